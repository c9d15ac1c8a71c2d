-- Ends a hold: deletes it, tells the waiters, and bars its late messages. Also pays a debt of several holds of a name,
-- takes a waiter out of the queue, and hands on a name that is free while waiters are queued.
--
-- KEYS  1 lock   2 bar   3 queue (sorted set of waiters)   4 alive (hash: waiter -> until when it counts, ms, and its offer)
--       5 marker (admission of this master)
-- ARGV  1 largest ballot that the hold may have sent here, 0 for none   2 '1' where it sent several ballots, or several
--       holds are ended   3 window in us   4 TTL of the bar in ms   5 channel, '' for no message
--       6 what the first waiter gets: 'F' word that the name is free here; 'R' the name, and word of it;
--         'A' the same, also where nothing was deleted but the name is free; 'N' nothing
--       7 what the inboxes of waiters begin with   8 for how long the name is reserved, in ms
--       9 waiter to be taken out of the queue, '' for none
--       10 the marker that the connection expects; '' where it knows of none: then no hold is written
--       11... hold ids, or reservations
-- Reply 1 where a hold was present, 0 where none was
--
-- Where the hold is not present, its acquire may still be on its way; the bar is raised to its ballot, so that it is
-- refused when it comes. The bar is never raised beyond the window: a ballot up there is refused as it is.
-- A waiter is '>', its ticket in 16 digits, ':', its Locker's id, ':', a number; its inbox is ARGV 7 and the Locker's id.
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
local n = 0
if ARGV[12] then n = redis.call('HDEL', KEYS[1], unpack(ARGV, 11))
elseif ARGV[11] then n = redis.call('HDEL', KEYS[1], ARGV[11]) end
if ARGV[9] ~= '' then
  redis.call('ZREM', KEYS[3], ARGV[9])
  redis.call('HDEL', KEYS[4], ARGV[9])
end
if n > 0 or (ARGV[6] == 'A' and redis.call('EXISTS', KEYS[1]) == 0) then
  if n > 0 then
    n = 1
    if ARGV[5] ~= '' then redis.pcall('PUBLISH', ARGV[5], ARGV[11]) end
  end
  local head = ARGV[6] ~= 'N' and redis.call('ZRANGE', KEYS[3], '0', '0')[1]
  if head then
    local t = redis.call('TIME')
    local us = t[1] * 1000000 + t[2]
    local now = math.floor(us / 1000)
    local what = 'R'
    if ARGV[6] == 'F' then what = 'F' end
    local function done(reply) return type(reply) ~= 'table' or not reply.err end
    local function write(alive, top)
      local stands, ttl, first, last, id = string.match(alive, '^%d+ (%d+) (%d+) (%d+) (%d+) (.+)$')
      if not id or what ~= 'R' or ARGV[10] == '' or tonumber(stands) < now then return end
      if redis.pcall('GET', KEYS[5]) ~= ARGV[10] or redis.call('EXISTS', KEYS[1]) == 1 then return end
      local low, high, window = tonumber(first), tonumber(last), tonumber(ARGV[3])
      if not top or low <= tonumber(top) or low < us - window or high > us + window then return end
      if not done(redis.pcall('HSET', KEYS[1], id, '1')) then return end
      if done(redis.pcall('PEXPIRE', KEYS[1], ttl)) and done(redis.pcall('SET', KEYS[2], last, 'PX', ARGV[4])) then
        return id, #id .. ':' .. id .. first .. ':' .. #ARGV[10] .. ':' .. ARGV[10]
      end
      redis.call('HDEL', KEYS[1], id)
    end
    while head do
      local heard, id, word = 0, nil, nil
      local inbox = string.match(head, '^>%d+:(.*):%d+$')
      local alive = redis.call('HGET', KEYS[4], head)
      if inbox and alive and tonumber(string.match(alive, '^%d+') or 0) >= now then
        local top = redis.pcall('GET', KEYS[2]) or '0'
        if type(top) ~= 'string' or not string.find(top, '^%d+$') then top = nil
        elseif tonumber(top) < tonumber(ARGV[1]) then top = ARGV[1] end
        id, word = write(alive, top)
        if what == 'R' and not id then word = (top or '0') .. ':' end
        heard = redis.pcall('PUBLISH', ARGV[7] .. inbox, (id and 'G' or what) .. #head .. ':' .. head .. (word or '') .. KEYS[1])
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
          redis.call('PEXPIRE', KEYS[1], ARGV[8])
        end
        break
      end
      head = redis.call('ZRANGE', KEYS[3], '0', '0')[1]
    end
  end
  if n > 0 and ARGV[2] == '0' then return n end
end
local raw = redis.call('GET', KEYS[2])
if raw and not string.find(raw, '^%d+$') then return redis.error_reply('BADBAR the bar of this name is not a number') end
local ballot = tonumber(ARGV[1])
if ballot > 0 and (not raw or tonumber(raw) < ballot) then
  local t = redis.call('TIME')
  if ballot <= t[1] * 1000000 + t[2] + tonumber(ARGV[3]) then redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[4]) end
end
return n
