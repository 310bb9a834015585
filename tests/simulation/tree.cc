#include "simulation/tree.h"

#include <cstdio>

#include "protocol/lock_path.h"

namespace zklock::simulation {

using protocol::BaseOf;
using protocol::ParentOf;

const Znode* Tree::Find(const std::string& path) const {
  const auto found = nodes_.find(path);
  return found == nodes_.end() ? nullptr : &found->second;
}

Stat Tree::StatOf(const std::string& path) const {
  Stat stat{};
  const Znode* const node = Find(path);
  if (node == nullptr) return stat;
  stat.czxid = node->czxid;
  stat.mzxid = node->mzxid;
  stat.ctime = node->ctime;
  stat.mtime = node->mtime;
  stat.version = node->version;
  stat.ephemeralOwner = node->owner;
  stat.dataLength = static_cast<std::int32_t>(node->data.size());
  stat.numChildren = static_cast<std::int32_t>(node->children.size());
  stat.cversion = 2 * node->created - stat.numChildren;
  return stat;
}

std::vector<std::string> Tree::EphemeralsOf(std::int64_t session) const {
  const auto found = ephemerals_.find(session);
  if (found == ephemerals_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void Tree::Save(const std::string& path) {
  if (!saves_) return;
  const Znode* const node = Find(path);
  undo_.emplace_back(path, node == nullptr ? std::nullopt : std::optional(*node));
}

void Tree::Put(const std::string& path, const std::optional<Znode>& node) {
  const auto found = nodes_.find(path);
  if (found != nodes_.end()) {
    if (found->second.owner != 0) ephemerals_[found->second.owner].erase(path);
    nodes_.erase(found);
  }
  if (!node) return;
  if (node->owner != 0) ephemerals_[node->owner].insert(path);
  nodes_.emplace(path, *node);
}

void Tree::Prepare(const std::vector<Op>& ops, Txn& txn) {
  saves_ = ops.size() > 1;
  for (txn.failed = 0; txn.failed < ops.size(); ++txn.failed) {
    txn.error = PrepareOne(ops[txn.failed], txn);
    if (txn.error != ZOK) break;
  }
  saves_ = false;
  if (txn.error != ZOK) {
    txn.changes.clear();
    for (auto one = undo_.rbegin(); one != undo_.rend(); ++one) Put(one->first, one->second);
  }
  undo_.clear();
}

int Tree::PrepareOne(const Op& op, Txn& txn) {
  Change change{.kind = Change::Kind::kCreate, .path = op.path, .data = op.data};
  if (op.type == OpType::kCreate) {
    const Znode* const parent = Find(ParentOf(op.path));
    if (parent == nullptr) return ZNONODE;
    if (op.mode == ZOO_PERSISTENT_SEQUENTIAL || op.mode == ZOO_EPHEMERAL_SEQUENTIAL) {
      char number[16];
      std::snprintf(number, sizeof number, "%010d", parent->created);
      change.path += number;
    }
    if (Find(change.path) != nullptr) return ZNODEEXISTS;
    if (parent->owner != 0) return ZNOCHILDRENFOREPHEMERALS;
    change.is_container = op.mode == ZOO_CONTAINER;
    if (op.mode == ZOO_EPHEMERAL || op.mode == ZOO_EPHEMERAL_SEQUENTIAL) change.owner = txn.session;
  } else {
    const Znode* const node = Find(op.path);
    if (node == nullptr) return ZNONODE;
    if (op.version >= 0 && op.version != node->version) return ZBADVERSION;
    if (op.type == OpType::kCheck) return ZOK;
    const bool deletes = op.type != OpType::kSet;
    if (deletes && !node->children.empty()) return ZNOTEMPTY;
    if (op.type == OpType::kDeleteContainer && (!node->is_container || node->created == 0)) {
      return ZBADARGUMENTS;
    }
    change.kind = deletes ? Change::Kind::kDelete : Change::Kind::kSet;
    change.version = node->version + 1;
  }
  Apply(change, txn);
  txn.changes.push_back(std::move(change));
  return ZOK;
}

void Tree::Apply(const Change& change, const Txn& txn) {
  Save(change.path);
  if (change.kind == Change::Kind::kSet) {
    Znode& node = nodes_.at(change.path);
    node.data = change.data;
    node.version = change.version;
    node.mzxid = txn.zxid;
    node.mtime = txn.ms;
    return;
  }
  const std::string parent_path = ParentOf(change.path);
  Save(parent_path);
  if (change.kind == Change::Kind::kCreate) {
    Put(change.path, Znode{.data = change.data,
                           .owner = change.owner,
                           .is_container = change.is_container,
                           .czxid = txn.zxid,
                           .mzxid = txn.zxid,
                           .ctime = txn.ms,
                           .mtime = txn.ms});
    Znode& parent = nodes_.at(parent_path);
    parent.children.emplace(BaseOf(change.path));
    ++parent.created;
  } else {
    Put(change.path, std::nullopt);
    nodes_.at(parent_path).children.erase(std::string(BaseOf(change.path)));
  }
}

void Tree::ApplySession(const Txn& txn) {
  if (txn.kind == Txn::Kind::kOpenSession) sessions_[txn.session] = txn.timeout_ms;
  if (txn.kind == Txn::Kind::kCloseSession) {
    sessions_.erase(txn.session);
    ephemerals_.erase(txn.session);
  }
}

}  // namespace zklock::simulation
