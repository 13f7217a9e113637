-- Judges the conditions of batches and makes all changes of each, or none of them. The
-- batches are of callers that know nothing of each other: each is judged by itself, after
-- those before it. script.go joins the parts of the script in the order of this picture:
--
--   batch.lua    epoch, format and history agree?   no: one reply to all batches
--                     |
--   record.lua   (reads and makes the stored forms)
--   trim.lua     (finds what the log no longer keeps)
--                     |
--   apply.lua    for each batch, in turn:
--                  run     deadline passed?         reply 'deadline'
--                  read    each action's record     damaged: reply 'unreadable'
--                  permit  each condition           fails: reply 'condition'
--                  - - - - - - - - nothing is written above this line - - - - - - - -
--                  act     put, remove, rebind      reply 'ok'
--                     |
--   trim.lua     saveHead: the log's head, once for all batches; then trim what is due
--
-- If the server refuses a command of a batch (pcall), the reply is 'error'; or 'unknown' if the
-- batch has changed something before. Such changes stay, so the head is stored even then. If the
-- head cannot be stored, 'unknown' takes the place of each 'ok'. The server runs nothing else
-- meanwhile.
--
-- KEYS  meta, index, log, then the resource of each action of each batch
-- ARGV  HEAD arguments of all batches, then for each batch BATCH arguments, and STRIDE for
--       each of its actions, see apply.lua
-- Returns the reply to each batch, or one reply to all: a list that begins with a word.
local HEAD, BATCH, STRIDE = 7, 4, 25
-- SUM is how many digits a sum has, see sum.go.
local SUM = 8
local call, KEYS, ARGV = redis.call, KEYS, ARGV
local byte, format, match, sub = string.byte, string.format, string.match, string.sub

-- clock is in microseconds; if it is empty, TIME is the clock. keep has the entries, bytes and
-- milliseconds that a log keeps when it is trimmed. It is trimmed when it has more entries than
-- dueEntries, more bytes than dueBytes, or an entry that is older than dueAge milliseconds.
local epoch, version, clock, keep, dueEntries, dueBytes, dueAge = unpack(ARGV, 1, HEAD)

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
local ms = format('%d', now / 1000)
local seq, count, bytes, oldest = meta[3] + 0, meta[4] + 0, meta[5] + 0, meta[6] + 0
-- Internal records have no log entries, and are numbered by themselves.
local internal = (meta[7] or 0) + 0

-- write calls a command that changes something. wrote reports whether the batch that is run has
-- changed something.
local wrote = false
local function write(...)
  call(...)
  wrote = true
end

-- grown notes the length of a record that is written, or of its log entry. Readers use the largest
-- length ever to bound how many records or entries they ask for at once.
local largest = (meta[9] or math.huge) + 0
local function grown(length)
  if length > largest then
    largest = length
    write('HSET', KEYS[1], 'largest', format('%d', length))
  end
end
