// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/config.hpp"
#include "schema/file_set.hpp"

#include <boost/json/object.hpp>

#include <string>

// The configuration of a projector: where the towers of a multimodal model stand in it.

namespace modeld::quantize {

/// The first of "architectures"; empty where there is none.
std::string first_class(const boost::json::object& config);

/// The class that decides the family of a projector: the vision tower's own where it has one.
std::string projector_class_of(const boost::json::object& config);

/// Sets `vision`, `audio`, `text_width` and `block_count`, and the fact `processor`. malformed: no
/// width of the text model.
Result<void> name_towers(ModelConfig& config, const FileSet& files);

} // namespace modeld::quantize
