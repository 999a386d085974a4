#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura::faulty {

// Makes faults happen in this rank, as the variable PLEXAURA_FAULTS says: "RANK:TIMES:MORE:FAULT:POINT" for
// each, separated by semicolons. A fault happens when the rank has reached POINT this many TIMES, and then
// MORE further points. Faults: kill, stop, exit, hang, terminate, late (by 200 ms), and "flip" with the
// argument of flip_bit(). Appends "RANK:POINT" of each fault to the file that PLEXAURA_FAULTS_HAPPENED names.
class Faults {
 public:
  static Faults& of_this_process();

  // Called by any thread when the rank has reached a point of its work.
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
