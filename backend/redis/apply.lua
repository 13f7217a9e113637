-- Judges all conditions of a batch and makes all its changes, or none. Nothing
-- is written before everything was judged.
-- KEYS  meta, index, log, then the resource of each action
-- ARGV  epoch, format, deadline and clock in microseconds (clock '' is TIME),
--       request id, the log's bounds (entries, bytes, age in ms, slack in
--       entries), number of actions, then STRIDE arguments for each action
local STRIDE = 12
local epoch, deadline, clock, request = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local meta = call('HMGET', KEYS[1], 'format', 'epoch', 'seq', 'count', 'bytes', 'oldest', 'trimmed')
if not meta[1] or not meta[2] then return { 'epoch', '' } end
if meta[1] ~= ARGV[2] then return { 'format', meta[1] or '' } end
if meta[2] ~= epoch then return { 'epoch', meta[2] or '' } end

local now
if clock ~= '' then
  now = tonumber(clock)
else
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
if deadline ~= '' and now > tonumber(deadline) then return { 'deadline' } end
local ms = format('%.0f', math.floor(now / 1000))
local seq, count, bytes = tonumber(meta[3]), tonumber(meta[4]), tonumber(meta[5])

-- bound says whether a live resource other than the key's holds a bound
-- reference to it. A referrer that does not decode counts as live.
local function bound(prefix, own, items)
  local from = '[' .. prefix
  while true do
    local page = call('ZRANGE', KEYS[2], from, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', '0', '64')
    for _, member in ipairs(page) do
      local referrer = sub(member, #prefix + 1)
      if referrer ~= own then
        local r = load(items .. referrer, false)
        if r and (r.damaged or not expired(r, now)) then return true end
      end
      from = '(' .. member
    end
    if #page < 64 then return false end
  end
end

-- judge returns the name of the condition that fails, nil if all hold.
local function judge(a, r)
  local presence = ARGV[a + 3]
  if presence == 'a' then return r and 'exists' or nil end
  local uid, rev, deleting, refs = ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7]
  if not r then
    local deed = ARGV[a]
    if presence == 'p' or uid ~= '' or rev ~= '' or deleting ~= '' or refs ~= '' or deed == 'd' then return 'absent' end
    return nil
  end
  if uid ~= '' and uid ~= r.uid then return 'conflict' end
  if rev ~= '' and rev ~= r.rev then return 'conflict' end
  if deleting == 'n' and r.deleting ~= '' then return 'deleting' end
  if deleting == 'y' and r.deleting == '' then return 'notdeleting' end
  return nil
end

-- kept adds to the entries of a reindex those that do not follow from the body:
-- that of the deletion behind the first, which is the definition, and the expiry.
local function kept(old, new)
  local deleting, expiry, i = '', '', 1
  while i <= #old do
    local t, hi, lo = byte(old, i, i + 2)
    local last = i + 2 + hi * 256 + lo
    if t == 120 then expiry = sub(old, i, last) end
    if t == 105 and sub(old, i + 3, i + 13) == '\2_deleting\0' then deleting = sub(old, i, last) end
    i = last + 1
  end
  local _, hi, lo = byte(new, 1, 3)
  local first = 3 + hi * 256 + lo
  return sub(new, 1, first) .. deleting .. sub(new, first + 1) .. expiry
end

-- What is stored, and what of it counts: what is expired is absent.
local actions = tonumber(ARGV[10])
local stored, live, was, will = {}, {}, {}, {}
for i = 1, actions do
  local a, key = 11 + (i - 1) * STRIDE, KEYS[3 + i]
  local deed, kind, name = ARGV[a], ARGV[a + 1], ARGV[a + 2]
  local r = load(key, deed ~= 'p')
  if r and r.damaged then
    -- Only a delete that asks nothing else may go on, with the members to remove.
    if not (deed == 'd' and ARGV[a + 8] == 'damaged') and deed ~= 'e' then return { 'unreadable', tostring(i) } end
  end
  if r and not r.damaged then
    was[i] = { n = 'n' .. kind .. name }
    if not members(r.entries, kind, name, was[i]) then return { 'unreadable', tostring(i) } end
    if deed == 'p' and not r.whole and expired(r, now) then r = load(key, true) end
  end
  stored[i] = r
  live[i] = (r and (r.damaged or not expired(r, now))) and r or nil
  if deed ~= 'e' and not (r and r.damaged) then
    local failed = judge(a, live[i])
    if not failed and live[i] and ARGV[a + 7] ~= '' and bound(ARGV[a + 7], kind .. name, ARGV[a + 11]) then failed = 'referenced' end
    if failed then
      local current = live[i] and load(key, true)
      return { 'condition', tostring(i), failed, current and current.value or '' }
    end
  end
  if deed == 'r' and live[i] then ARGV[a + 9] = kept(r.entries, ARGV[a + 9]) end
  if deed == 'p' or deed == 'r' then
    will[i] = { n = 'n' .. kind .. name }
    members(ARGV[a + 9], kind, name, will[i])
  end
end

-- append writes one entry of the log and returns its revision.
local function append(id, kind, size, key, value, before)
  local head = kind .. '\n' .. size .. '\n' .. ms .. '\n' .. request .. '\n' .. key
  if before then
    call('XADD', KEYS[3], id, 'h', head, 'd', value, 'b', before)
  else
    call('XADD', KEYS[3], id, 'h', head, 'd', value)
  end
  if count == 0 then meta[6] = ms end
  count, bytes = count + 1, bytes + size
end

local function revision()
  seq = seq + 1
  return epoch .. '-' .. format('%.0f', seq)
end

-- reindexed moves a resource from one set of index members to another.
local function reindexed(old, new)
  local gone, come = {}, {}
  for entry, member in pairs(old) do
    if not new[entry] then gone[#gone + 1] = member end
  end
  for entry, member in pairs(new) do
    if not old[entry] then come[#come + 1] = '0' come[#come + 1] = member end
  end
  if #gone > 0 then zset('ZREM', KEYS[2], gone) end
  if #come > 0 then zset('ZADD', KEYS[2], come) end
end

local function remove(i, a)
  local r, key = stored[i], ARGV[a + 1] .. ARGV[a + 2]
  local id = revision()
  if r.damaged then
    append(id, 'x', #key + 192, key, '')
    local gone = {} -- whole members, as the caller found them
    members(ARGV[a + 9], '', '', gone)
    reindexed(gone, {})
  else
    append(id, 'd', r.size + 64, key, r.value)
    reindexed(was[i], {})
  end
  call('DEL', KEYS[3 + i])
  return id
end

local reply = { 'ok', '' }
local first = seq
for i = 1, actions do
  local a, key = 11 + (i - 1) * STRIDE, KEYS[3 + i]
  local deed, r = ARGV[a], live[i]
  if deed == 'p' then
    local old = was[i] or {}
    if stored[i] and not r then
      remove(i, a)
      old = {}
    end
    local id, entries = revision(), ARGV[a + 9]
    local uid, created, spec, ext = ARGV[a + 8], ms, id, ''
    if r then
      uid, created, ext = r.uid, r.created, r.ext
      if sub(ARGV[a + 10], 1, 1) ~= 'c' then spec = r.spec end
    end
    -- rest: caller flag, expiry, deleting flag, size and size of rows, then entries and body after the last newline
    local expires, deleting, size, rowsize, at = match(ARGV[a + 10], '^.(%d*)\n(%l?)\n(%d+)\n(%d+)\n()')
    local value = id .. '\n' .. spec .. '\n' .. uid .. '\n' .. created .. '\n' .. ms .. '\n' .. expires .. '\n' .. deleting .. '\n' ..
      size .. '\n' .. rowsize .. '\n' .. #entries .. '\n' .. ext .. '\n' .. entries .. sub(ARGV[a + 10], at)
    if not r then
      append(id, 'a', size + 64, ARGV[a + 1] .. ARGV[a + 2], value)
      reindexed(old, will[i])
    elseif r.entries == entries then
      append(id, 'm', size + 64 + r.rowsize, ARGV[a + 1] .. ARGV[a + 2], value)
    else
      append(id, 'm', size + 64 + r.rowsize, ARGV[a + 1] .. ARGV[a + 2], value, r.entries)
      reindexed(old, will[i])
    end
    call('SET', key, value)
    reply[i + 2] = id .. '\n' .. spec .. '\n' .. uid .. '\n' .. created .. '\n' .. ms
  elseif deed == 'd' then
    reply[i + 2] = remove(i, a) .. '\n' .. (r.value or '')
  elseif deed == 'r' then
    local entries = ARGV[a + 9]
    local size, rowsize = match(ARGV[a + 10], '^.%d*\n%l?\n(%d+)\n(%d+)\n')
    local head = match(r.value, '^[^\n]*\n[^\n]*\n[^\n]*\n%d+\n%d+\n%d*\n%l?\n')
    size = format('%.0f', size + #r.value - r.at - r.length + 1) -- the caller does not know the body
    local value = head .. size .. '\n' .. rowsize .. '\n' .. #entries .. '\n' .. r.ext .. '\n' .. entries .. sub(r.value, r.at + r.length)
    call('SET', key, value)
    reindexed(was[i], will[i])
    reply[i + 2] = value
  elseif deed == 'e' then
    local s = stored[i]
    if s and not s.damaged and not r then
      remove(i, a)
      reply[i + 2] = '1'
    else
      -- What is not expired or cannot be judged must not come up for ever.
      if not s or s.damaged then call('ZREM', KEYS[2], ARGV[a + 9]) end
      reply[i + 2] = ''
    end
  else
    reply[i + 2] = r and r.value or ''
  end
end

-- trim removes the oldest entries that are over the log's bounds, never the last.
local most, size, age, slack = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local trimmed = meta[7] or ''
local function trim()
  local removed, last = 0, nil
  local from = trimmed == '' and '-' or '(' .. trimmed
  while true do
    local page = call('XRANGE', KEYS[3], from, '+', 'COUNT', '64')
    if #page == 0 then return last end
    for _, entry in ipairs(page) do
      local kind, entrysize, at = match(entry[2][2], '^(%l)\n(%d+)\n(%d+)\n')
      if kind ~= 's' then
        at = tonumber(at) or now / 1000
        if removed == 256 or count <= 1 or count <= most and bytes <= size and now / 1000 - at <= age then
          meta[6] = format('%.0f', at)
          return last
        end
        removed, last = removed + 1, entry[1]
        count, bytes = count - 1, math.max(bytes - (tonumber(entrysize) or 0), 0)
      end
      from = '(' .. entry[1]
    end
  end
end
if count > 1 and (count > most + slack or bytes > size + size * slack / most or now / 1000 - (tonumber(meta[6]) or 0) > age + age * slack / most) then
  local last = trim()
  if last then
    trimmed = last
    local e, s = match(last, '^(%d+)-(%d+)$')
    call('XTRIM', KEYS[3], 'MINID', '~', e .. '-' .. format('%.0f', s + 1))
    call('HSET', KEYS[1], 'seq', format('%.0f', seq), 'count', format('%.0f', count), 'bytes', format('%.0f', bytes), 'oldest', meta[6], 'trimmed', trimmed)
    first = seq
  end
end
if seq ~= first then
  call('HSET', KEYS[1], 'seq', format('%.0f', seq), 'count', format('%.0f', count), 'bytes', format('%.0f', bytes), 'oldest', meta[6])
end
reply[2] = format('%.0f', seq)
return reply
