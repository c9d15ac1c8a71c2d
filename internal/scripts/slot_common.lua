-- The check of the semaphore, before the script of a plain lock runs for one of its slots: KEYS[1] is
-- 'P:{name}:slot:i/k', slot i of k. The hash of the name itself, P:{name}, has the field kind, 'semaphore k'. By this
-- field plain locks, readers-writer locks and semaphores of other sizes refuse each other.
local call = redis.call
local base, size = string.match(KEYS[1], '^(.*}):slot:%d+/(%d+)$')
local mark, marked = 'semaphore ' .. size, call('HMGET', base, 'fence', 'kind')
local new = call('PTTL', base) == -2
if not new and not marked[1] then return redis.error_reply('WRONGTYPE the hash is not a lock') end
local other = not new and marked[2] ~= mark and (marked[2] or 'lock')

-- Marks the name, for as long as the hash of the slot lives. A lease expires 75 s before its hash does, so no lease is
-- without the mark.
local function prolong_mark()
  local life = call('PTTL', KEYS[1])
  if new then call('HSET', base, 'fence', '0000000000000000', 'kind', mark) end
  if call('PTTL', base) < life then call('PEXPIRE', base, life) end
end
