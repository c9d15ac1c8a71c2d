-- The lease of a plain lock: its id, text, and deadline in ballots; all are nil if there is none. A foreign hash, which
-- may be large, is not read: the hash of a plain lock has at most the fields fence, queue, kept and one lease.
if kind then return {8, kind, now} end
local holder, text, ends
local number = leases()
if number == 1 then
  local all = call('HGETALL', lock)
  for i = 1, #all, 2 do
    if all[i] ~= 'fence' and all[i] ~= 'queue' and all[i] ~= 'kept' then holder, text = all[i], all[i + 1] end
  end
  ends = tonumber(string.match(text, '^%d+~? %d+ %d+ (%d+)'))
end
if number > 1 or number == 1 and (not ends or #holder + #text > 1500) then
  return redis.error_reply('WRONGTYPE the hash is not a lock')
end
