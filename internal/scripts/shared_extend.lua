-- Extends the existing share of a lease.
--
-- KEYS  1 lock   2 admission record
-- ARGV  1 stamp of the admission record that the connection expects; '' without the restart guard   2 lease id
--       3 TTL in ms; 0: no change   4 epoch
-- Reply 1                                              extended: at least the TTL is left, never less than before
--       {5, ms left (-2: free), fence, time us}        missing: ms left is that of the key; fence is the larger of both
--       {7, record, time us}                           refused: the TTL is too long, or the epoch is too old
--
-- Safe to repeat: the script sets an absolute expiry, creates no share, and shortens none. It works in quarantine,
-- because a share that exists was not forgotten. A full master refuses it: unlike the TTL of a key, the expiry of a
-- share is data.
local call, lock, ttl, epoch = redis.call, KEYS[1], tonumber(ARGV[3]), ARGV[4]
-- include now.lua
local ends = tonumber(call('ZSCORE', lock, ARGV[2]) or 0)
if ends <= now then
  local fence, reads = call('GET', lock .. ':fence') or '0', call('GET', lock .. ':reads') or '0'
  if (tonumber(reads) or 0) > (tonumber(fence) or 0) then fence = reads end
  return {5, call('PTTL', lock), fence, now}
end
-- include extend_common.lua
if ends < now + ttl * 1000 then call('ZADD', lock, now + ttl * 1000, ARGV[2]) end
if ttl > 0 and call('PTTL', lock) < ttl then call('PEXPIRE', lock, ARGV[3]) end
return 1
