-- Judges all conditions of a batch and makes all its changes, or none. Nothing is
-- written before all conditions are judged. The parts of the script are batch.lua,
-- put.lua, single.lua, record.lua and apply.lua, in this order.
-- KEYS  meta, index, log, then the resource of each action
-- ARGV  HEAD arguments of the batch, then STRIDE of each action, see action()
local HEAD, STRIDE = 9, 22
local call, KEYS, ARGV = redis.call, KEYS, ARGV
local byte, format, match, sub = string.byte, string.format, string.match, string.sub

-- deadline and clock are in microseconds; if clock is empty, TIME is the clock.
-- keep says what the log keeps when it is trimmed. The last three say when it is
-- trimmed: with more entries, more bytes, or an entry that is older, in
-- milliseconds.
local epoch, version, deadline, clock, request, keep, dueEntries, dueBytes, dueAge = unpack(ARGV, 1, HEAD)

local meta = call('HMGET', KEYS[1], 'format', 'epoch', 'seq', 'count', 'bytes', 'oldest', 'internal', 'replid', 'largest')
if not meta[1] or not meta[2] then return { 'epoch', '' } end
if meta[1] ~= version then return { 'format', meta[1] } end
if meta[2] ~= epoch then return { 'epoch', meta[2] } end
-- A server that was a replica in between has taken over another history and has
-- another replication id. Connections that were idle meanwhile do not notice.
if (meta[8] or '') ~= '' then
  local replid = match(call('INFO', 'replication'), 'master_replid:(%x+)')
  if replid and replid ~= meta[8] then return { 'epoch', '' } end
end

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
-- Internal records have no log entries and revisions of their own.
local internal = (meta[7] or 0) + 0
local function isInternal(kind) return byte(kind, 2) == 95 end -- '_' behind the tag of the tuple

-- grown notes the length of a record that is written. From the largest one ever,
-- readers know how many records they can ask for at once.
local largest = (meta[9] or math.huge) + 0
local function grown(length)
  if length > largest then
    largest = length
    call('HSET', KEYS[1], 'largest', format('%d', length))
  end
end

-- due says whether the log has to be trimmed.
local function due(count, bytes)
  return count > dueEntries + 0 or bytes > dueBytes + 0 or now / 1000 - oldest > dueAge + 0
end

-- The stored form of a resource, see record.go: header fields, each ended by a
-- newline, then the entries and the body. A newer release may use ext, and every
-- write keeps it.
local HEADER = '^(%d+%-%d+)\n(%d+%-%d+)\n([^\n]*)\n(%d+)\n%d+\n(%d+)\n(%d*)\n(%l?)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n([^\n]*)\n(%d+)\n([^\n]*)\n()'

-- record makes the stored form. stamped are the fields up to the finalizers, fields
-- those up to the flag of deletion.
local function record(stamped, fields, size, rowsize, entries, refsize, refs, declared, passes, ext, body)
  return stamped .. '\n' .. fields .. '\n' .. format('%d', size) .. '\n' .. rowsize .. '\n' .. #entries .. '\n' .. refsize .. '\n' .. #refs .. '\n' ..
    declared .. '\n' .. passes .. '\n' .. ext .. '\n' .. entries .. refs .. body
end
