-- Reads or changes the admission of this master: whether it has forgotten nothing for at least the guard time.
--
-- KEYS  1 marker
-- ARGV  1 what to do: 'read'; 'start' a quarantine; 'end' one that is over; 'now' admits without waiting; 'guard' sets
--         the guard time, 'epoch' the epoch and what may act alone; both leave the rest of the marker as it is
--       2 identity (run_id/master_replid) that the connection has read   3 the marker that the caller saw, '' for none
--       4 median of the masters' times in us   5 how far this master's time may be from it in us
--       6 quarantine in us   7 guard time in ms   8 epoch of the set of masters
--       9 home of a master that remembers every write, '' where none is named (start, now)
--       10 the largest epoch whose set may act alone (start, now, epoch)
-- Reply {1, marker, time us, identity}   written, or (read) as it stands
--       {2, marker, time us, identity}   nothing written: the identity is another than the caller's
--       {3, marker, time us, identity}   nothing written: the marker is another than the one that the caller saw
--       {4, marker, time us, identity}   nothing written: this master's clock is too far from the others'
--       {5, marker, time us, identity}   nothing written: the quarantine is not over, there is none to end, or (guard,
--                                        epoch) the marker is not this server's, or (epoch) has a larger one
--
-- With an epoch above 0 the marker has the time since when it has had it here. That is always this writing, unless the
-- epoch stays what it is: so a marker that was lost and written anew tells no older time.
-- Safe to repeat: each change compares with exactly what was seen, so a second delivery finds another marker. The
-- identity is read here, from the server itself: no marker is ever written for another server than this one.
local marker = redis.call('GET', KEYS[1]) or ''
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''
local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
local identity = run .. '/' .. replid
local what = ARGV[1]
if what == 'read' then return {1, marker, now, identity} end
if identity ~= ARGV[2] then return {2, marker, now, identity} end
if marker ~= ARGV[3] then return {3, marker, now, identity} end
local median = tonumber(ARGV[4])
if what ~= 'now' and what ~= 'guard' and what ~= 'epoch' and math.abs(now - median) > tonumber(ARGV[5]) then return {4, marker, now, identity} end
local new
if what == 'end' then
  local own, deadline = string.match(marker, '^v1 id=(%S+) .* state=pending:(%d+)$')
  if own ~= identity or now < tonumber(deadline) then return {5, marker, now, identity} end
  new = string.gsub(marker, 'state=pending:%d+$', 'state=admitted')
elseif what == 'guard' then
  local own = string.match(marker, '^v1 id=(%S+) ')
  if own ~= identity or not string.find(marker, ' guard=%d+ ') then return {5, marker, now, identity} end
  new = string.gsub(marker, ' guard=%d+ ', ' guard=' .. ARGV[7] .. ' ', 1)
elseif what == 'epoch' then
  local own = string.match(marker, '^v1 id=(%S+) ')
  local epoch = string.match(marker, ' epoch=(%d+) ')
  if own ~= identity or not epoch or ARGV[8] == '0' or tonumber(ARGV[8]) < tonumber(epoch) then return {5, marker, now, identity} end
  local since = string.match(marker, ' since=(%d+) ')
  if ARGV[8] ~= epoch or not since then since = string.format('%.0f', now) end
  new = string.gsub(marker, ' epoch=.* state=', ' epoch=' .. ARGV[8] .. ' since=' .. since .. ' alone=' .. ARGV[10] .. ' state=')
else
  local state, home, epoch = 'admitted', '', ARGV[8]
  if what == 'start' then state = 'pending:' .. string.format('%.0f', math.max(now, median) + tonumber(ARGV[6])) end
  if ARGV[9] ~= '' then home = ' home=' .. ARGV[9] end
  if epoch ~= '0' then epoch = epoch .. ' since=' .. string.format('%.0f', now) .. ' alone=' .. ARGV[10] end
  new = 'v1 id=' .. identity .. home .. ' guard=' .. ARGV[7] .. ' epoch=' .. epoch .. ' state=' .. state
end
redis.call('SET', KEYS[1], new)
return {1, new, now, identity}
