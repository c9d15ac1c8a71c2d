-- Takes the lock of one name for one hold: a new hold, a re-ask of one, a heal, or an import.
--
-- KEYS  1 lock (hash: hold id -> depth)   2 bar (largest ballot accepted)   3 marker (admission of this master)
-- ARGV  1 the marker that the connection expects; '' when the guard is off
--       2 hold id   3 TTL in ms   4 first ballot   5 last ballot of the block (= 4 where no block is reserved)
--       6 window: how far a ballot may be from this master's time, in us   7 TTL of the bar in ms   8 depth
--       9 mode: 'a' acquire or re-ask, 'h' heal, 'i' import   10 id that an import replaces, '' where there is none
--       11 epoch of the caller's set of masters
-- Reply 1                              granted
--       {2, ms left, bar, time us}     held by another
--       {3, bar, time us}              stale: the ballot is not above the bar, or long past
--       {4, bar, time us}              ahead: the ballot is too far in the future
--       {5, bar, time us, -2}          missing: nothing here to import
--       {6, marker or '', time us}     abstained: this master does not vote, or not for this caller
--       {7, marker, time us}           refused: the TTL is above the guard time, or the epoch is an old one
--
-- Safe to repeat: with the hold present and the ballot equal to the bar nothing is written and the answer is 1 again.
-- In every other case a second delivery finds its ballot at or below the bar and is stale, whatever happened between.
-- Where the hold is present its time is never shortened: a longer extension may have come before. The first write is the
-- one that memory limits refuse, so a script that fails for want of memory has written nothing.
local lock, bar, id, mode = KEYS[1], KEYS[2], ARGV[2], ARGV[9]
if ARGV[1] ~= '' then
  local marker = redis.call('GET', KEYS[3])
  if marker ~= ARGV[1] then
    local t = redis.call('TIME')
    local now = t[1] * 1000000 + t[2]
    if mode == 'a' then return {6, marker or '', now} end
    if marker then
      local guard, epoch = string.match(marker, ' guard=(%d+) epoch=(%d+) ')
      if not guard then return redis.error_reply('BADMARKER the admission marker cannot be read') end
      if tonumber(ARGV[3]) > tonumber(guard) or tonumber(ARGV[11]) < tonumber(epoch) then return {7, marker, now} end
    end
  end
end
local raw = redis.call('GET', bar)
local top = 0
if raw then
  if not string.find(raw, '^%d+$') then return redis.error_reply('BADBAR the bar of this name is not a number') end
  top = tonumber(raw)
end
local first, last = tonumber(ARGV[4]), tonumber(ARGV[5])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local mine, previous = false, false
if redis.call('EXISTS', lock) == 1 then
  if redis.call('HGET', lock, id) then
    if last == top then return 1 end
    mine = true
  elseif ARGV[10] ~= '' and redis.call('HGET', lock, ARGV[10]) then
    previous = true
  else
    return {2, redis.call('PTTL', lock), raw or '0', now}
  end
elseif mode == 'i' then
  return {5, raw or '0', now, -2}
end
local window = tonumber(ARGV[6])
if first <= top or first < now - window then return {3, raw or '0', now} end
if last > now + window and not (first == top + 1 and last == first) then return {4, raw or '0', now} end
redis.call('HSET', lock, id, ARGV[8])
if not mine or redis.call('PTTL', lock) < tonumber(ARGV[3]) then redis.call('PEXPIRE', lock, ARGV[3]) end
redis.call('SET', bar, ARGV[5], 'PX', ARGV[7])
if previous then redis.call('HDEL', lock, ARGV[10]) end
return 1
