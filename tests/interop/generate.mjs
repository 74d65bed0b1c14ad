// Loads a GGUF in node-llama-cpp and prints what it generates at temperature 0.
// usage: node generate.mjs FILE TOKENS PROMPT
import { getLlama, LlamaCompletion } from "node-llama-cpp";

const [file, tokens, prompt] = process.argv.slice(2);
const llama = await getLlama({ gpu: false, build: "never", progressLogs: false });
const model = await llama.loadModel({ modelPath: file });
const context = await model.createContext({ contextSize: 256, threads: 2 });
const completion = new LlamaCompletion({ contextSequence: context.getSequence() });
const text = await completion.generateCompletion(prompt, { maxTokens: Number(tokens), temperature: 0 });
process.stdout.write(text);
await llama.dispose();
process.exit(0);
