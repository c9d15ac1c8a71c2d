-- Ends a hold: deletes it, tells the waiters, and bars its late messages. Also pays a debt of several holds of a name.
--
-- KEYS  1 lock   2 bar
-- ARGV  1 largest ballot that the hold may have sent here   2 '1' where it sent several ballots, or several holds are
--       ended   3 window in us   4 TTL of the bar in ms   5 channel, '' for no message   6... hold ids
-- Reply 1 where a hold was present, 0 where none was
--
-- Where the hold is not present, its acquire may still be on its way; the bar is raised to its ballot, so that it is
-- refused when it comes. The bar is never raised beyond the window: a ballot up there is refused as it is.
-- Safe to repeat: the second time there is nothing to delete and the bar is high enough; the answer is then 0, which
-- says the same to the one who asked, that the hold is not there. The message is published after the delete and by
-- pcall, so a user without rights to the channel still releases.
local n
if ARGV[7] then n = redis.call('HDEL', KEYS[1], unpack(ARGV, 6)) else n = redis.call('HDEL', KEYS[1], ARGV[6]) end
if n > 0 then
  n = 1
  if ARGV[5] ~= '' then redis.pcall('PUBLISH', ARGV[5], ARGV[6]) end
  if ARGV[2] == '0' then return 1 end
end
local raw = redis.call('GET', KEYS[2])
if raw and not string.find(raw, '^%d+$') then return redis.error_reply('BADBAR the bar of this name is not a number') end
local ballot = tonumber(ARGV[1])
if not raw or tonumber(raw) < ballot then
  local t = redis.call('TIME')
  if ballot <= t[1] * 1000000 + t[2] + tonumber(ARGV[3]) then redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[4]) end
end
return n
