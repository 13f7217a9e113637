-- Makes sure that a shard belongs to this store, and begins a new epoch where
-- the server is not the one that wrote the last, so that two histories never
-- share one. Called on a connection before anything else is.
-- KEYS  meta, log, index
-- ARGV  run id of the server, format that the caller reads, number of
--       shards, index of the shard, clock in microseconds ('' is TIME), random
--       number below 2^20 ('' asks whether one is needed), 'begin' for a new
--       epoch whatever the server
local call, format = redis.call, string.format
local run, version, shards, index, clock, random, begin = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

for i, want in ipairs({ 'hash', 'stream', 'zset' }) do
  local is = call('TYPE', KEYS[i])['ok']
  if is ~= 'none' and is ~= want then return { 'foreign', KEYS[i] } end
end
local m = call('HMGET', KEYS[1], 'magic', 'format', 'shards', 'shard', 'run', 'epoch', 'seq', 'epochs')
if call('EXISTS', KEYS[1]) == 1 and m[1] ~= 'sluice store' then return { 'foreign', KEYS[1] } end
if m[1] then
  if m[2] ~= version then return { 'format', m[2] or '' } end
  if m[3] ~= shards or m[4] ~= index then return { 'shards', m[3] or '' } end
  if m[5] == run and m[6] and begin == '' then return { 'ok', m[6] } end
end
if random == '' then return { 'begin', m[1] and 'old' or 'new' } end

local seconds
if clock ~= '' then
  seconds = math.floor(tonumber(clock) / 1000000)
else
  seconds = tonumber(call('TIME')[1])
end
-- A log without its meta still tells which epochs it had.
local previous = tonumber(m[6] or '') or 0
local last = call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', '1')[1]
if last then previous = math.max(previous, tonumber(string.match(last[1], '^%d+'))) end
if not m[1] then call('XTRIM', KEYS[2], 'MAXLEN', '0') end -- nobody can resume in it
local epoch = math.max(previous, seconds * 1048576) + 1 + tonumber(random)
if epoch > 9007199254740991 then return { 'clock' } end
epoch = format('%.0f', epoch)

local epochs = m[8] or ''
if m[6] then
  epochs = epochs .. m[6] .. '-' .. (m[7] or '0') .. ' '
  -- At most 1,023 older epochs: the oldest are given up, and their positions expire.
  local _, n = string.gsub(epochs, ' ', ' ')
  for _ = 1024, n do epochs = string.gsub(epochs, '^[^ ]* ', '', 1) end
end
call('HSET', KEYS[1], 'magic', 'sluice store', 'format', version, 'shards', shards, 'shard', index,
  'run', run, 'epoch', epoch, 'seq', '0', 'epochs', epochs)
for _, field in ipairs({ 'count', 'bytes', 'oldest' }) do call('HSETNX', KEYS[1], field, '0') end
call('XADD', KEYS[2], epoch .. '-0', 'h', 's\n0\n0\n\n', 'd', '')
return { 'ok', epoch }
