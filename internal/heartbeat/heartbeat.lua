-- Returns the fields of INFO that a heartbeat checks, in 136 bytes instead of 6 000.
--
-- KEYS  1 in a cluster only: the hash tag of the bucket. A node that does not own the tag's slot refuses the script.
-- ARGV  1 only for a master that a replica may replace: in a cluster the digest in the last reply, else any word
-- Reply a string of words: run_id, master_replid2, second_repl_offset, role, connected_slaves, maxmemory,
--       maxmemory_policy, aof_enabled, aof_rewrite_in_progress, aof_rewrite_scheduled, server_time_usec, and then
--       - in a cluster, a digest of the first three words, of the slots of this node, with marks for slots that are
--         being moved, and of the number of replicas. If the digest equals ARGV 1, the first three words are "=".
--       - with ARGV 1, the state and the lag of each replica, such as "online,1".
--       A field that the server does not report is "?".
--
-- Safe to repeat: the script only reads.
local server, replication = redis.call('INFO', 'server'), redis.call('INFO', 'replication')
local memory, persistence = redis.call('INFO', 'memory'), redis.call('INFO', 'persistence')
local function field(section, name)
  local _, at = string.find(section, '\n' .. name .. ':', 1, true) -- a plain search is faster than a pattern
  return at and string.match(section, '^%S+', at + 1) or '?'
end
local reply = {
  field(server, 'run_id'), field(replication, 'master_replid2'), field(replication, 'second_repl_offset'),
  field(replication, 'role'), field(replication, 'connected_slaves'), field(memory, 'maxmemory'),
  field(memory, 'maxmemory_policy'), field(persistence, 'aof_enabled'),
  field(persistence, 'aof_rewrite_in_progress'), field(persistence, 'aof_rewrite_scheduled'),
  field(server, 'server_time_usec'),
}
if KEYS[1] then
  local nodes = redis.call('CLUSTER', 'NODES')
  local id, slots = string.match('\n' .. nodes, '\n(%x+) %S+ %S*myself%S*' .. string.rep(' %S+', 5) .. '([^\n]*)')
  local _, replicas = string.gsub(nodes, ' ' .. id .. ' ', '')
  local identity = table.concat(reply, ' ', 1, 3)
  reply[#reply + 1] = string.sub(redis.sha1hex(identity .. ' ' .. replicas .. slots), 1, 12)
  if reply[#reply] == ARGV[1] then
    reply[1], reply[2], reply[3] = '=', '=', '='
  end
end
if ARGV[1] then
  for state, lag in string.gmatch(replication, '\nslave%d+:%S-,state=([%w_]+),%S-,lag=(%-?%d+)') do
    reply[#reply + 1] = state .. ',' .. lag
  end
end
return table.concat(reply, ' ')
