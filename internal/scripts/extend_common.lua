-- The function that both extends share.

-- Returns the answer that refuses an extension under another admission record than the expected one: because of its
-- epoch or its TTL; nil if it is allowed.
local function refuse(stamp, ttl, epoch)
  if stamp == '' or call('GETRANGE', KEYS[2], '0', '18') == stamp then return nil end
  local record = call('GETRANGE', KEYS[2], 0, 65535)
  if record == '' then return nil end
  local least, longest = string.match(record, '^v3 .* epoch=(%d+) .*longest=(%d+) ')
  if not least then return redis.error_reply('BADRECORD the admission record of this master cannot be read') end
  if ttl > tonumber(longest) or epoch < tonumber(least) then
    local t = call('TIME')
    return {7, record, t[1] * 1000000 + t[2]}
  end
end
