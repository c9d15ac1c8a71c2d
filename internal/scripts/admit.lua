-- Reads or changes the admission record of this master, which states whether the master may vote.
--
-- KEYS  1 admission record
-- ARGV  1 the step   2 identity (run_id/master_replid2/second_repl_offset) that the connection has read
--       3 the record that the caller has read, '' for none
--       4 the masters' time in us: the median of their clocks; with start the latest clock that is near the median, and
--         with epoch a time that is not earlier than any correct clock
--       5 the maximum difference between this master's time and ARGV 4, in us
--       6 the wanted record, with a new stamp; the step decides which parts are used
-- Steps read             writes nothing
--       start            writes the wanted record, in quarantine; if its state is unproven, it keeps that state
--       replace          like start, but also if the record names another shard or other masters, which an operator has
--                        allowed
--       now              writes the wanted record, admitted, if the record is of this server, or of an admitted durable
--                        master with the same name
--       end              admits, if the quarantine is this server's and has lasted for as long as both records require
--       epoch            writes masters, next, epoch and final of the wanted record
--       max-ttl, settle  write only what every step writes: see below
--       rewrite          writes the identity, if the server is the same and has freed its replication backlog
-- Reply {1, record, time us, identity}   written; with read: the record as it is
--       {2, record, time us, identity}   not written: the identity is not that of ARGV 2
--       {3, record, time us, identity}   not written: the record is not that of ARGV 3
--       {4, record, time us, identity}   not written (start, replace, end): this master's clock is too far from ARGV 4
--       {5, record, time us, identity}   not written: there is no quarantine, or it has not ended; or the record is of
--                                        another server, cannot be read, or has the same shard and a larger epoch
--       {6, record, time us, identity}   not written: the record names another shard, or at this epoch other masters
--
-- Each reply ends with the ms until the record expires, or -1 if it does not, or -2 if there is none. A record has no
-- TTL: one that has was given it by another program, and any step that writes removes it.
--
-- Every step but read writes the larger quarantine of the two records. The longest TTL is that of the wanted record if
-- a quarantine begins or ends, because the caller has seen the masters agree on it. With max-ttl it is the larger of
-- both, and otherwise it does not change: only an operator gives a voting master a longer one, after all masters
-- have the longer quarantine. Safe to repeat: the record is written only if it is exactly the one that the caller has
-- read. The script reads the identity from the server itself, so a record is never written for another server. If the
-- epoch is above 0, the record has the time at which this master got this epoch (raised). Each write of another epoch,
-- and of a whole record, sets this time, so that a record that was lost does not return with an older time. The times
-- in the record are this master's, or ARGV 4 if that is later: from a clock that is behind, time would seem to have
-- passed when the clock is set right.
local call = redis.call
-- include now.lua
-- include record.lua
local step, theirs, record = ARGV[1], tonumber(ARGV[4]), call('GETRANGE', KEYS[1], 0, 65535)
local run = string.match(call('INFO', 'server'), 'run_id:(%x+)')
local replid, offset = string.match(call('INFO', 'replication'), 'replid2:(%x+).*second_repl_offset:(%-?%d+)')
local identity = run .. '/' .. replid .. '/' .. offset
local function answer(result) return {result, record, now, identity, call('PTTL', KEYS[1])} end
if step == 'read' then return answer(1) elseif identity ~= ARGV[2] then return answer(2) end
if record ~= ARGV[3] then return answer(3) end
local starts = step == 'start' or step == 'replace'
if (starts or step == 'end') and math.abs(now - theirs) > tonumber(ARGV[5]) then return answer(4) end
local old, wanted = fields(record), fields(ARGV[6])
local function number(values, key) return tonumber(values[key]) or 0 end
local function text(n) return string.format('%.0f', n) end
local function larger(key) return text(math.max(number(old, key), number(wanted, key))) end
local agreed = (starts or step == 'end' or step == 'now' and old.state ~= 'admitted') and wanted or old
local longest = step == 'max-ttl' and larger('maxttl') or text(number(agreed, 'maxttl'))
local new, quarantine, moment = old, larger('quarantine'), text(math.max(now, theirs))
local shard = old.masters and old.shard ~= wanted.shard
local list = old.epoch == wanted.epoch and (old.masters ~= wanted.masters or old.next ~= wanted.next)
if step ~= 'replace' and (shard or list) then return answer(6) end
if not shard and number(wanted, 'epoch') < number(old, 'epoch') then return answer(5) end
local freed = step == 'rewrite' and not string.find(replid, '[^0]') and offset == '-1'
local own = old.id == identity or freed and string.match(old.id or '', '^%x+') == run
local known = own or old.state == 'admitted' and old.durable and old.durable == wanted.durable
if starts or step == 'now' and known then
  new = wanted
  if wanted.epoch ~= '0' then new.raised = moment end
  new.since, new.state = moment, not starts and 'admitted' or new.state == 'unproven' and 'unproven' or 'quarantine'
elseif not own or step == 'now' or step == 'epoch' and wanted.epoch == '0' then
  return answer(5)
elseif step == 'end' then
  local waits = old.state == 'quarantine' or old.state == 'unproven'
  if not waits or now < number(old, 'since') + quarantine * 1000 then return answer(5) end
  new.state, new.since = 'admitted', moment
elseif step == 'epoch' then
  if wanted.epoch ~= old.epoch then new.raised = moment end
  new.masters, new.next, new.epoch, new.final = wanted.masters, wanted.next, wanted.epoch, wanted.final
end
new.id, new.maxttl, new.quarantine = identity, longest, quarantine
record = string.match(ARGV[6], '^%S+ %x+') -- its version and stamp
for key in string.gmatch('id db durable shard masters next epoch raised final maxttl quarantine state since', '%l+') do
  if new[key] then record = record .. ' ' .. key .. '=' .. new[key] end
end
call('SET', KEYS[1], record)
return answer(1)
