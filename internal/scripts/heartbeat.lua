-- Returns the fields of INFO that a heartbeat checks: 130 bytes instead of 6 000. Writes nothing.
--
-- KEYS  none
-- ARGV  1 "replicas" for a master that one of its replicas may replace: the state of each is wanted
-- Reply a string of words: run_id, master_replid2, second_repl_offset, role, connected_slaves, maxmemory,
--       maxmemory_policy, server_time_usec; with ARGV 1 also the state and the lag of each replica, "online,1".
--       A field that the server does not report is "?".
--
-- Safe to repeat: it only reads.
local server, replication, memory =
  redis.call('INFO', 'server'), redis.call('INFO', 'replication'), redis.call('INFO', 'memory')
local function field(section, name)
  local _, at = string.find(section, '\n' .. name .. ':', 1, true) -- a plain search is faster than a pattern
  return at and string.match(section, '^%S+', at + 1) or '?'
end
local reply = {
  field(server, 'run_id'), field(replication, 'master_replid2'), field(replication, 'second_repl_offset'),
  field(replication, 'role'), field(replication, 'connected_slaves'), field(memory, 'maxmemory'),
  field(memory, 'maxmemory_policy'), field(server, 'server_time_usec'),
}
if ARGV[1] then
  for state, lag in string.gmatch(replication, '\nslave%d+:%S-,state=([%w_]+),%S-,lag=(%-?%d+)') do
    reply[#reply + 1] = state .. ',' .. lag
  end
end
return table.concat(reply, ' ')
