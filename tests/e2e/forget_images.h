#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "programs.h"

namespace kymo::test {

// Takes the list of the images out of the record of a checkpoint, as in one of an older version. Returns the list.
inline nlohmann::json forget_images(const std::string& checkpoint) {
  const std::string path = checkpoint + "/checkpoint.json";
  nlohmann::json record = nlohmann::json::parse(read_file(path));
  nlohmann::json images = record["images"];
  record.erase("images");
  std::ofstream(path) << record;
  return images;
}

}  // namespace kymo::test
