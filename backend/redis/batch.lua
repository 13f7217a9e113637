-- Judges all conditions of a batch and makes all its changes, or none. Nothing
-- is written before everything was judged. The parts of the script are batch.lua,
-- put.lua, record.lua and apply.lua, in this order.
-- KEYS  meta, index, log, then the resource of each action
-- ARGV  epoch, format, deadline and clock in microseconds (clock '' is TIME),
--       request id, what the log keeps when it is trimmed, when that is to be
--       (more entries, more bytes, an older entry in ms), then STRIDE arguments for
--       each action: deed, kind, name, the condition (presence, uid, revision,
--       deleting, references), new uid, entries, 'c' for a caller's put, fields of
--       the record from expiry to the length of the entries, size, body. To
--       delete what is damaged the uid is 'damaged' and the entries are members;
--       the deed 'e' removes what is expired, its entries are the expiry's member
local HEAD, STRIDE = 9, 14
local call, KEYS, ARGV = redis.call, KEYS, ARGV
local byte, format, match, sub = string.byte, string.format, string.match, string.sub
local epoch, deadline, clock, request = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local meta = call('HMGET', KEYS[1], 'format', 'epoch', 'seq', 'count', 'bytes', 'oldest')
if not meta[1] or not meta[2] then return { 'epoch', '' } end
if meta[1] ~= ARGV[2] then return { 'format', meta[1] } end
if meta[2] ~= epoch then return { 'epoch', meta[2] } end

local now
if clock ~= '' then
  now = tonumber(clock)
else
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
if deadline ~= '' and now > tonumber(deadline) then return { 'deadline' } end
local ms = format('%d', now / 1000)
local seq, count, bytes, oldest = meta[3] + 0, meta[4] + 0, meta[5] + 0, meta[6] + 0

-- due says whether the log is to be trimmed.
local function due(count, bytes)
  return count > ARGV[7] + 0 or bytes > ARGV[8] + 0 or now / 1000 - oldest > ARGV[9] + 0
end

-- The stored form of a resource, see record.go: header fields, each ended by a
-- newline, then the entries and the body. Fields that a newer release adds are
-- in ext, which every write carries over.
local HEADER = '^(%d+%-%d+)\n(%d+%-%d+)\n([^\n]*)\n(%d+)\n%d+\n(%d*)\n(%l?)\n(%d+)\n(%d+)\n(%d+)\n([^\n]*)\n()'
