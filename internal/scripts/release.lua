-- Ends a hold: deletes it, tells the waiters, and bars its late messages. Also pays a debt of several holds of a name,
-- takes a waiter out of the queue, and hands on a name that is free while waiters are queued.
--
-- KEYS  1 lock   2 bar   3 queue (sorted set of waiters)   4 alive (hash: waiter -> until when it counts, ms, and its offer)
--       5 marker (admission of this master)
-- ARGV  1 the marker that the connection expects; '' where it knows of none: then no hold is written
--       2 hold id, or reservation; '' where nothing is ended   3 largest ballot that the hold may have sent here, 0 for none
--       4 'gives' or 'gives window bar reserve'; left out where it would be 'A 15000000 3600000 500' and is the last
--         gives: what the first waiter gets: 'F' word that the name is free here; 'R' the name, and word of it;
--         'A' the same, also where nothing was deleted but the name is free; 'N' nothing; 'L' as 'R', but the last id is that
--         of a waiter which leaves the queue, and nothing is said on the channel
--         a '+' behind it: several ballots were sent, or several holds are ended
--         window: how far a ballot may be from this master's time, in us   bar: for how long it is remembered, in ms
--         reserve: for how long the name is reserved, in ms; without the last three the usual ones
--       5... more hold ids, or reservations
-- Reply 1 where a hold was present, 0 where none was
--
-- Where the hold is not present, its acquire may still be on its way; the bar is raised to its ballot, so that it is
-- refused when it comes. The bar is never raised beyond the window: a ballot up there is refused as it is. What is so
-- written has a 0 before it; acquire.lua says why. The bar of a hold that is granted is inside the window, and is written as
-- acquire.lua writes it, in place too, by what stood there itself and not by what this release bars.
-- The channel is the lock's key with 'free' in place of 'lock'. A waiter is '>', its ticket in 16 digits, ':', its Locker's id,
-- ':', a number; its inbox is the marker's key with 'inbox:' and the Locker's id in place of 'marker'.
-- What stands before 'lock' many.lua has at hand, as KEYS.stem.
-- One that no longer counts, or whose inbox nobody hears, is dropped, and the next is looked at.
-- The name is given to a waiter in one of two ways.
-- Granted: where its offer stands (see acquire.lua), its hold is written, as its acquire would have: this master is admitted,
-- by a marker that is the caller's; the lock is not there; the first ballot is above the bar and above what this release
-- bars, and both are inside the window. Then 'G' is published, with the length of the waiter, ':', the waiter, the length
-- of the hold id, ':', the hold id, the first ballot, ':', the length of the marker, ':', the marker, and the lock's key. It is a
-- vote; the marker says which master has given it, since replicas repeat messages. Whoever cannot be told, or has no memory
-- for the writes, does not get it so: the hold is deleted again. The bar stays, which costs a ballot.
-- Reserved: otherwise a field of the lock with the waiter's name is written, which ends by itself, counts for nothing, and
-- keeps everybody else out. 'R' is published, with the length of the waiter, ':', the waiter, the bar, ':', and the lock's
-- key: a ballot just above the bar leaves those who wait behind, and have asked before, above it.
-- Where nothing is written the word is 'F', the length of the waiter, ':', the waiter, and the lock's key.
-- Safe to repeat: the second time there is nothing to delete and the bar is high enough; the answer is then 0, which
-- says the same to the one who asked, that the hold is not there. The message is published after the delete and by
-- pcall, so a user without rights to the channel still releases; the waiters then find out by themselves.
local id, gives, several = ARGV[2], 'A', false
if ARGV[4] then gives, several = string.sub(ARGV[4], 1, 1), string.sub(ARGV[4], 2, 2) == '+' end
local n = 0
if ARGV[5] then n = redis.call('HDEL', KEYS[1], id, unpack(ARGV, 5))
elseif id ~= '' then n = redis.call('HDEL', KEYS[1], id) end
if gives == 'L' then
  local waiter = ARGV[5] and ARGV[#ARGV] or id
  redis.call('ZREM', KEYS[3], waiter)
  redis.call('HDEL', KEYS[4], waiter)
end
if n > 0 or (gives == 'A' and redis.call('EXISTS', KEYS[1]) == 0) then
  if n > 0 then
    n = 1
    if gives ~= 'L' then redis.pcall('PUBLISH', (KEYS.stem or string.sub(KEYS[1], 1, -5)) .. 'free', id) end
  end
  local head = gives ~= 'N' and redis.call('EXISTS', KEYS[3]) == 1 and redis.call('ZRANGE', KEYS[3], '0', '0')[1]
  if head then
    local t = redis.call('TIME')
    local us = t[1] * 1000000 + t[2]
    local now, barred = math.floor(us / 1000), ARGV[3] + 0
    local window, keep, reserve = 15000000, nil, '500'
    if ARGV[4] and #ARGV[4] > 2 then
      window, keep, reserve = string.match(ARGV[4], ' (%d+) (%d+) (%d+)$')
      window = window + 0
    end
    local what = 'R'
    if gives == 'F' then what = 'F' end
    local function done(reply) return type(reply) ~= 'table' or not reply.err end
    local function write(alive, raw, top)
      local stands, ttl, first, last, id = string.match(alive, '^%d+ (%d+) (%d+) (%d+) (%d+) (.+)$')
      if not id or what ~= 'R' or ARGV[1] == '' or tonumber(stands) < now then return end
      if redis.pcall('GET', KEYS[5]) ~= ARGV[1] or redis.call('EXISTS', KEYS[1]) == 1 then return end
      local low, high = tonumber(first), tonumber(last)
      if not top or low <= top or low <= barred or low < us - window or high > us + window then return end
      if not done(redis.pcall('HSET', KEYS[1], id, '1')) then return end
      if done(redis.pcall('PEXPIRE', KEYS[1], ttl)) then
        local bar
        if keep then
          bar = redis.pcall('SET', KEYS[2], '0' .. last, 'PX', keep)
        elseif raw and #raw == #last and top - top % 1800000000 == high - high % 1800000000 then
          bar = redis.pcall('SETRANGE', KEYS[2], '0', last)
        else
          bar = redis.pcall('SET', KEYS[2], last, 'PX', '5430000')
        end
        if done(bar) then return id, #id .. ':' .. id .. first .. ':' .. #ARGV[1] .. ':' .. ARGV[1] end
      end
      redis.call('HDEL', KEYS[1], id)
    end
    while head do
      local heard, id, word = 0, nil, nil
      local inbox = string.match(head, '^>%d+:(.*):%d+$')
      local alive = redis.call('HGET', KEYS[4], head)
      if inbox and alive and tonumber(string.match(alive, '^%d+') or 0) >= now then
        local raw, top = redis.pcall('GET', KEYS[2]), nil
        if not raw then top = 0
        elseif type(raw) == 'string' and string.find(raw, '^%d+$') then top = raw + 0 end
        id, word = write(alive, raw, top)
        if what == 'R' and not id then word = string.match(top and (top < barred and ARGV[3] or raw) or '0', '^0*(%d+)$') .. ':' end
        heard = redis.pcall('PUBLISH', string.sub(KEYS[5], 1, -7) .. 'inbox:' .. inbox, (id and 'G' or what) .. #head .. ':' .. head .. (word or '') .. KEYS[1])
        if id and (type(heard) ~= 'number' or heard == 0) then redis.call('HDEL', KEYS[1], id) end
        if type(heard) ~= 'number' then break end
      end
      if heard == 0 or what == 'R' then
        redis.call('ZREM', KEYS[3], head)
        redis.call('HDEL', KEYS[4], head)
      end
      if heard > 0 then
        if what == 'R' and not id then
          redis.call('HSET', KEYS[1], head, '0')
          redis.call('PEXPIRE', KEYS[1], reserve)
        end
        break
      end
      head = redis.call('ZRANGE', KEYS[3], '0', '0')[1]
    end
  end
  if n > 0 and not several then return n end
end
local raw = redis.call('GET', KEYS[2])
if raw and not string.find(raw, '^%d+$') then return redis.error_reply('BADBAR the bar of this name is not a number') end
local ballot = tonumber(ARGV[3])
if ballot > 0 and (not raw or tonumber(raw) < ballot) then
  local t = redis.call('TIME')
  local window, keep = 15000000, '3600000'
  if ARGV[4] and #ARGV[4] > 2 then window, keep = string.match(ARGV[4], ' (%d+) (%d+) %d+$') end
  if ballot <= t[1] * 1000000 + t[2] + window then redis.call('SET', KEYS[2], '0' .. ARGV[3], 'PX', keep) end
end
return n
