#include "analyzer/diagnose/diagnose.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/diagnose/finding.h"
#include "analyzer/diagnose/predict.h"

namespace vramtrace::diagnose {
namespace {

const char* KeyOf(State state) {
  switch (state) {
    case State::kAbsent:
      return "absent";
    case State::kTooLittle:
      return "too_little";
    case State::kFound:
      return "found";
    case State::kNotRecorded:
      return "not_recorded";
  }
  return "";
}

// Which to show: sure ones first, then the decision order.
std::set<size_t> Choose(const std::vector<Finding>& findings) {
  std::set<size_t> shown;
  for (const Confidence confidence : {Confidence::kHigh, Confidence::kMedium}) {
    for (size_t i = 0; i < findings.size() && shown.size() < static_cast<size_t>(kMostShown); ++i) {
      if (findings[i].state == State::kFound && findings[i].confidence == confidence) shown.insert(i);
    }
  }
  return shown;
}

// Hands out every byte of the instant once: the first diagnosis that claims it has it.
class Ledger {
 public:
  explicit Ledger(const Evidence& evidence) : evidence_(evidence) {}

  uint64_t Take(const Finding& finding) {
    uint64_t bytes = 0;
    for (const size_t index : finding.blocks) {
      if (taken_.insert(index).second) bytes += evidence_.snapshot.blocks[index].block.TensorBytes();
    }
    for (const Part& part : finding.parts) {
      const auto [left, added] = left_.try_emplace(part.term, evidence_.Term(part.term));
      const uint64_t share = std::min(part.bytes, left->second);
      left->second -= share;
      bytes += share;
    }
    return bytes;
  }

 private:
  const Evidence& evidence_;
  std::set<size_t> taken_;
  std::map<std::string, uint64_t> left_;
};

void Fill(const Row& row, const Finding& finding, const Evidence& evidence, report::v1::Diagnosis* out) {
  out->set_id(std::string(row.id));
  out->set_key(std::string(row.key));
  out->set_title(std::string(row.title));
  out->set_state(KeyOf(finding.state));
  if (finding.state == State::kFound)
    out->set_confidence(std::string(attribution::NameOf(finding.confidence)));
  if (finding.state == State::kFound) out->set_sentence(finding.sentence);
  out->set_bytes(ClaimedBytes(evidence, finding));
  for (const auto& [what, text] : finding.numbers) {
    report::v1::Fact* fact = out->add_numbers();
    fact->set_what(what);
    fact->set_text(text);
  }
  for (const std::string& missing : finding.missing) out->add_missing(missing);
  for (const Remedy& remedy : finding.remedies) {
    report::v1::Remedy* to = out->add_remedies();
    to->set_change(remedy.change);
    to->set_technique(remedy.technique);
    to->set_saves_most(remedy.saves_most);
    if (!remedy.predicted) continue;
    to->set_used(remedy.predicted->used);
    to->set_used_low(remedy.predicted->low);
    to->set_used_high(remedy.predicted->high);
  }
  for (const std::string& why : finding.cannot) out->add_cannot(why);
  out->set_signature(std::string(row.signature));
  out->set_needs(std::string(row.needs));
  out->set_confidence_rule(std::string(row.confidence));
  out->set_limits(std::string(row.limits));
}

void DiagnoseDevice(const Source& source, uint32_t device, const Options& options,
                    report::v1::DeviceDiagnoses* out) {
  const Evidence evidence = Collect(source, device);
  out->set_device(device);
  out->set_at(evidence.refused ? "refusal" : "peak");
  out->set_used(evidence.used);
  std::vector<Finding> findings;
  for (const Row& row : Rows()) findings.push_back(row.decide(evidence));
  const std::set<size_t> shown = Choose(findings);
  Predictor predictor(evidence);
  Ledger ledger(evidence);
  uint64_t explained = 0;
  for (size_t i = 0; i < findings.size(); ++i) {
    const bool show = shown.contains(i);
    if (show && options.predict) predictor.Weigh(&findings[i]);
    report::v1::Diagnosis* row = out->add_diagnoses();
    Fill(Rows()[i], findings[i], evidence, row);
    if (!show) continue;
    row->set_own_bytes(ledger.Take(findings[i]));
    // All of it is told with an earlier one already.
    row->set_shown(row->own_bytes() > 0 || row->bytes() == 0);
    explained += row->own_bytes();
  }
  out->set_rest(evidence.used > explained ? evidence.used - explained : 0);
}

}  // namespace

void Diagnose(const Source& source, const Options& options, report::v1::Report* report) {
  for (const auto& [index, device] : source.scan->devices) {
    if (device.allocations == 0 && device.refusals.empty() && source.scan->host.refused == 0) continue;
    DiagnoseDevice(source, index, options, report->add_diagnoses());
  }
}

}  // namespace vramtrace::diagnose
