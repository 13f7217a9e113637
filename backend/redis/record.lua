-- What apply.lua needs to read and index records.

-- parse returns the record as a table, nil if it does not have the form.
local function parse(v)
  local rev, spec, uid, created, finalizers, expires, deleting, size, rowsize, length, refsize, reflength, declared, passes, ext, at = match(v, HEADER)
  if not rev then return nil end
  return { value = v, rev = rev, spec = spec, uid = uid, created = created, finalizers = finalizers, expires = expires, deleting = deleting,
    size = size, rowsize = rowsize, refsize = refsize, declared = declared, passes = passes, ext = ext,
    at = at, refsat = at + length, bodyat = at + length + reflength }
end

-- load reads what is stored under a key: nil if there is nothing, else a record,
-- or { damaged = true } if it does not decode. whole also reads the body.
local function load(key, whole)
  local v
  if whole then
    v = call('GET', key)
    if not v then return nil end
  else
    v = call('GETRANGE', key, '0', '1023')
    if v == '' then return nil end
  end
  local r = parse(v)
  if not r then return { damaged = true } end
  r.whole = whole or #v < 1024
  if #v < r.bodyat - 1 then
    if r.whole then return { damaged = true } end
    return load(key, true)
  end
  r.entries, r.refs = sub(v, r.at, r.refsat - 1), sub(v, r.refsat, r.bodyat - 1)
  return r
end

-- expired says whether the record is expired at an instant in microseconds.
local function expired(r, now)
  return r.expires ~= '' and tonumber(r.expires) * 1000 <= now
end

-- wholeMembers adds members to a table that are packed like entries.
local function wholeMembers(packed, into)
  local i = 1
  while i <= #packed do
    local _, hi, lo = byte(packed, i, i + 2)
    local last = i + 2 + hi * 256 + lo
    local member = sub(packed, i, i) .. sub(packed, i + 3, last)
    into[member] = member
    i = last + 1
  end
end

-- zset makes one ZADD or ZREM of many members, in portions that fit the stack.
local function zset(command, key, list)
  local n, portion = #list, 2000
  for from = 1, n, portion do
    call(command, key, unpack(list, from, math.min(from + portion - 1, n)))
  end
end
