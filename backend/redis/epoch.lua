-- Makes sure that a shard belongs to this store, and begins a new epoch if the
-- server does not continue the history of the last one. So two histories never
-- share an epoch. It is called on each new connection, before any other call.
-- KEYS  meta, log, index
-- ARGV  what identifies the server's history: its run id and its replication id,
--       each empty if the server hides it; format, number of shards, index of the
--       shard, clock in microseconds ('' is TIME), the newest revision that the
--       caller saw ('' for none), random number below 2^20 ('' asks whether one is
--       needed), 'begin' for a new epoch whatever the server; for tests
local call, format, match = redis.call, string.format, string.match
local run, replid, version, shards, index, clock, seen, random, begin = unpack(ARGV)

for i, want in ipairs({ 'hash', 'stream', 'zset' }) do
  local is = call('TYPE', KEYS[i])['ok']
  if is ~= 'none' and is ~= want then return { 'foreign', KEYS[i] } end
end
local FIELDS = { 'magic', 'format', 'shards', 'shard', 'run', 'replid', 'epoch', 'seq', 'epochs' }
local m = {}
for i, value in ipairs(call('HMGET', KEYS[1], unpack(FIELDS))) do m[FIELDS[i]] = value end
if not m.magic and call('EXISTS', KEYS[1]) == 1 or m.magic and m.magic ~= 'sluice store' then return { 'foreign', KEYS[1] } end

-- continued reports whether the server continues the history of the stored epoch. The
-- replication id changes whenever a server becomes a primary. If it is hidden, the
-- run id at least tells processes apart. If both are hidden, the epoch itself is
-- what gateways agree on; that changes were lost shows only if the caller has seen
-- a later revision of it.
local function continued()
  local epoch, seq = match(seen, '^(%d+)-(%d+)$')
  if epoch == m.epoch and tonumber(seq) > tonumber(m.seq or 0) then return false end
  if replid ~= '' then
    return m.replid == replid and (run == '' or m.run == '' or m.run == run)
  end
  return run == '' or m.run == run
end

-- ended returns the last number of the epoch of the revision that the caller saw, '' if the
-- shard does not have the epoch.
local function ended(epochs)
  local epoch = match(seen, '^(%d+)-%d+$')
  return epoch and match(' ' .. epochs, ' ' .. epoch .. '%-(%d+) ') or ''
end

if m.magic then
  if m.format ~= version then return { 'format', m.format or '' } end
  if m.shards ~= shards or m.shard ~= index then return { 'shards', m.shards or '' } end
  if m.epoch and not begin and continued() then return { 'ok', m.epoch, ended(m.epochs or '') } end
end
if random == '' then return { 'begin', m.magic and 'old' or 'new', m.epoch or '' } end

local seconds
if clock ~= '' then
  seconds = math.floor(tonumber(clock) / 1000000)
else
  seconds = tonumber(call('TIME')[1])
end
-- If the meta was lost, the log still tells the last epoch; if the server was emptied, the caller may know a newer one,
-- begun within the same second.
local previous = math.max(tonumber(m.epoch or '') or 0, tonumber(match(seen, '^%d+') or '') or 0)
local last = call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', '1')[1]
if last then previous = math.max(previous, tonumber(match(last[1], '^%d+'))) end
if not m.magic then call('XTRIM', KEYS[2], 'MAXLEN', '0') end -- nobody can resume in it
local epoch = math.max(previous, seconds * 1048576) + 1 + tonumber(random)
if epoch > 9007199254740991 then return { 'clock' } end
epoch = format('%.0f', epoch)

local epochs = m.epochs or ''
if m.epoch then
  epochs = epochs .. m.epoch .. '-' .. (m.seq or '0') .. ' '
  -- At most 1,023 older epochs: the oldest are given up, and their positions expire.
  local _, n = string.gsub(epochs, ' ', ' ')
  for _ = 1024, n do epochs = string.gsub(epochs, '^[^ ]* ', '', 1) end
end
call('HSET', KEYS[1], 'magic', 'sluice store', 'format', version, 'shards', shards, 'shard', index,
  'run', run, 'replid', replid, 'epoch', epoch, 'seq', '0', 'epochs', epochs)
for _, field in ipairs({ 'count', 'bytes', 'oldest' }) do call('HSETNX', KEYS[1], field, '0') end
-- If the meta was lost, older records may be of any size: then there is no field.
if call('EXISTS', KEYS[3]) == 0 then call('HSETNX', KEYS[1], 'largest', '0') end
call('XADD', KEYS[2], epoch .. '-0', 'h', 's\n0\n0\n\n\n', 'd', '')
return { 'ok', epoch, ended(epochs) }
