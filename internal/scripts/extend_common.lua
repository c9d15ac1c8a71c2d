-- The common part of extend.lua and shared_extend.lua. If the admission record is not the expected one, the scripts
-- refuse an epoch that is older than the record's, a TTL that is longer than the record allows, and every lease if no
-- client with the shard in the record can have acquired one: the names may have been distributed over other shards.
-- include stamp.lua
local record = expected and '' or call('GETRANGE', KEYS[2], 0, 65535)
if record ~= '' then
  -- include record.lua
  local wants = fields(record)
  local least, longest = tonumber(wants.epoch), tonumber(wants.maxttl)
  if not (least and longest) then
    return redis.error_reply('BADRECORD the admission record of this master cannot be read')
  end
  if life - 75000 > longest or tonumber(ARGV[4]) < least or wants.state == 'unproven' then
    -- include now.lua
    return {7, record, now}
  end
end
