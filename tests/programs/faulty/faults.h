#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura::faulty {

// What goes wrong in this rank, and when, as the variable PLEXAURA_FAULTS says: "RANK:TIMES:MORE:FAULT:POINT" each, with a
// semicolon between two. It happens when the rank has come to POINT so often, and to so many points more. Faults: kill, stop, exit, hang,
// terminate, late (by 200 ms); and "flip" with what flip_bit() takes. "RANK:POINT" of each is added to the file that PLEXAURA_FAULTS_HAPPENED names.
class Faults {
 public:
  static Faults& of_this_process();

  // The rank has come to a point of its work. From any thread.
  void pass(std::string_view point);

 private:
  struct Fault {
    std::string what;
    std::string point;
    int times;
    int more;
  };

  Faults();
  void read(const std::string& entry);
  void note(const std::string& point) const;
  static bool is_due(Fault& fault, std::string_view point);

  int rank_;
  std::mutex mutex_;
  std::vector<Fault> faults_;
};

}  // namespace plexaura::faulty
