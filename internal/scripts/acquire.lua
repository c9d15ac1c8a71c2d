-- Takes the lock of one name for one hold: a new hold, a re-ask of one, a heal, or an import.
--
-- KEYS  1 lock (hash: hold id -> depth)   2 bar (largest ballot accepted)   3 marker (admission of this master)
--       with a ticket: 4 queue (sorted set of waiters)   5 alive (hash: waiter -> until when it counts, ms, and its offer)
-- ARGV  1 the marker that the connection expects; '' when the guard is off
--       2 hold id   3 TTL in ms   4 first ballot
--       5 'window bar', or 'window bar mode depth epoch'; '' or left out where it would be '15000000 3600000'
--         window: how far a ballot may be from this master's time, in us   bar: for how long it is remembered, in ms
--         mode: 'a' acquire or re-ask, 'h' heal, 'i' import; without it 'a', at depth 1
--         epoch: of the caller's set of masters, which counts for 'h' and 'i' alone
--       6 last ballot of the block; may be left out where it is the first
--       7 id that an import replaces; with a ticket the waiter, who takes up its reservation; left out where there is none
--       with a ticket: 8 rank of the waiter among all (less is earlier)   9 '1': the name is not taken while another
--       waiter is first   10 for how long a release may write this hold where it is refused now, in ms; 0 never
-- Reply 1                                             granted
--       {2, ms left, bar, time us, holder, place}     held by another, or reserved; holder '' where it is free and others
--                                                     are first; place in the queue, -1 where the caller is not in it
--       {3, bar, time us}                             stale: the ballot is not above the bar, or long past
--       {4, bar, time us}                             ahead: the ballot is too far in the future
--       {5, bar, time us, -2}                         missing: nothing here to import
--       {6, marker or '', time us}                    abstained: this master does not vote, or not for this caller
--       {7, marker, time us}                          refused: the TTL is above the guard time, or the epoch is an old one
--
-- Safe to repeat: with the hold present and the ballot equal to the bar nothing is written and the answer is 1 again. A
-- second delivery of what was granted and has ended since finds its ballot at or below the bar and is stale. One of what
-- was refused as held may be granted when the name is free: it then stands until its roll-back, which bars it, or for one
-- TTL. No delivery joins a queue later than a waiter counts. Where the hold is present its time is never shortened: a
-- longer extension may have come before. The first write is the one that memory limits refuse, so a script that fails for
-- want of memory has written nothing.
-- An offer stands behind the time until which its waiter counts: until when it stands (ms), TTL, first and last ballot, hold
-- id. It lets a release write the hold as this script would have, had the name been free; see there. It is made only of
-- ballots that this master would accept now, so a release of the hold always bars it. Each ask replaces the one before.
-- The bar is written over in place where that leaves it its hour, since SETRANGE takes less than half of what SET with PX takes:
-- a bar without a leading 0 was within the window of this master's time, as this ballot is, when it was given 5430 s. So where both
-- lie in one half hour of that time at most 1830 s have passed, by the same clock that expires keys. A bar that is written for
-- another time, or beyond the window, or by a release that bars what it ends, has a 0 before it, and so another length: the next
-- acquire writes it anew. A release that writes a hold writes its bar in the same way.
-- A waiter counts for 20 s where it is not heard of again.
-- A waiter that asks again drops the one before it and the one behind it where they no longer count, and so does one that joins
-- with a ballot that 8 divides, which is the same on all masters: the keys live as long as anybody waits, and those that died
-- must not stay in them for that long. A dead one that is first goes with a release. One behind may stay for as long as all who
-- come to stand beside it get the name at their first ask, by seven in eight of them. It takes nobody's turn.
local lock, bar, id, previous, rank = KEYS[1], KEYS[2], ARGV[2], ARGV[7], ARGV[8]
local window, keep, mode, depth, epoch = 15000000, nil, 'a', '1', nil
if ARGV[5] and ARGV[5] ~= '' then
  local more
  window, keep, more = string.match(ARGV[5], '^(%d+) (%d+)(.*)$')
  window = window + 0
  if more ~= '' then mode, depth, epoch = string.match(more, '^ (%l) (%d+) (%d+)$') end
end
if ARGV[1] ~= '' then
  local marker = redis.call('GET', KEYS[3])
  if marker ~= ARGV[1] then
    local t = redis.call('TIME')
    local now = t[1] * 1000000 + t[2]
    if mode == 'a' then return {6, marker or '', now} end
    if marker then
      local guard, least = string.match(marker, ' guard=(%d+) epoch=(%d+) ')
      if not guard then return redis.error_reply('BADMARKER the admission marker cannot be read') end
      if tonumber(ARGV[3]) > tonumber(guard) or tonumber(epoch) < tonumber(least) then return {7, marker, now} end
    end
  end
end
local raw = redis.call('GET', bar)
local top = 0
-- A text in arithmetic is taken for a number as tonumber does it, for less.
if raw then
  if not string.find(raw, '^%d+$') then return redis.error_reply('BADBAR the bar of this name is not a number') end
  top = raw + 0
end
local first = ARGV[4] + 0
local last = ARGV[6] and ARGV[6] + 0 or first
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local mine, replaces, ahead = false, false, false
local left = redis.call('PTTL', lock)
if left ~= -2 then
  local seen, all = nil, false
  -- One look shows who has a ticket all that HGET and HGET and HSCAN would: it is mostly refused. A hash of many fields is not
  -- shown as a whole.
  if rank then
    local scan = redis.call('HSCAN', lock, '0')
    seen, all = scan[2], scan[1] == '0'
  end
  if all then
    for i = 1, #seen, 2 do
      if seen[i] == id then mine = true elseif seen[i] == previous then replaces = true end
    end
  elseif redis.call('HGET', lock, id) then
    mine = true
  elseif previous and redis.call('HGET', lock, previous) then
    replaces = true
  end
  if mine then
    if last == top then return 1 end
    replaces = false
  elseif not replaces then
    ahead = (seen or redis.call('HSCAN', lock, '0')[2])[1] or ''
  end
elseif mode == 'i' then
  return {5, raw or '0', now, -2}
elseif ARGV[9] == '1' then
  local head = redis.call('ZRANGE', KEYS[4], '0', '0')[1]
  if head and head ~= previous then ahead = '' end
end
if ahead then
  local place = -1
  if rank and first >= now - 20000 * 1000 then
    -- Milliseconds are put together of seconds and the rest, which costs half of what a number of 13 digits does.
    local second, rest = t[1] + 0, math.floor(t[2] / 1000)
    local entry = string.format('%d%03d', second + 20, rest)
    if ARGV[1] ~= '' and ARGV[10] ~= '0' and first > top and first >= now - window and last <= now + window then
      local stands = rest + ARGV[10]
      entry = entry .. string.format(' %d%03d ', second + math.floor(stands / 1000), stands % 1000) .. ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. ARGV[6] .. ' ' .. id
    end
    local joins = redis.call('ZADD', KEYS[4], rank, previous) == 1
    redis.call('HSET', KEYS[5], previous, entry)
    redis.call('PEXPIRE', KEYS[4], '20000')
    redis.call('PEXPIRE', KEYS[5], '20000')
    place = redis.call('ZRANK', KEYS[4], previous)
    if not joins or first % 8 == 0 then
      local dropped = false
      for _, other in ipairs(redis.call('ZRANGE', KEYS[4], math.max(place - 1, 0), place + 1)) do
        if other ~= previous then
          local alive = redis.call('HGET', KEYS[5], other)
          if not alive or tonumber(string.match(alive, '^%d+') or 0) < math.floor(now / 1000) then
            redis.call('ZREM', KEYS[4], other)
            redis.call('HDEL', KEYS[5], other)
            dropped = true
          end
        end
      end
      if dropped then place = redis.call('ZRANK', KEYS[4], previous) end
    end
  end
  return {2, left, raw or '0', now, ahead, place}
end
if first <= top or first < now - window then return {3, raw or '0', now} end
if last > now + window and not (first == top + 1 and last == first) then return {4, raw or '0', now} end
redis.call('HSET', lock, id, depth)
if not mine or left < tonumber(ARGV[3]) then redis.call('PEXPIRE', lock, ARGV[3]) end
local text = ARGV[6] or ARGV[4]
if keep or last > now + window then
  redis.call('SET', bar, '0' .. text, 'PX', keep or '3600000')
elseif raw and #raw == #text and top - top % 1800000000 == last - last % 1800000000 then
  redis.call('SETRANGE', bar, '0', text)
else
  redis.call('SET', bar, text, 'PX', '5430000')
end
if replaces then
  redis.call('HDEL', lock, previous)
elseif rank then
  redis.call('ZREM', KEYS[4], previous)
  redis.call('HDEL', KEYS[5], previous)
end
return 1
