-- The stored form of a resource, see record.go: header fields, each ended by a newline, two sums
-- (sum.go), then the references and the body. The first capture is what a log entry keeps of the
-- fields when the record is replaced. A newer release may use ext, and every write keeps it.
local HEADER = '^((%d+%-%d+)\n%d+\n(%d*)\n(y?)\n)([%d%-]*)\n([^\n]*)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n(%d+)\n([^\n]*)\n(%d+)\n([^\n]*)\n(....)()'

-- sumOf returns the sum of a text, see sum.go.
local sha1hex = redis.sha1hex
local function sumOf(text) return sub(sha1hex(text), 1, SUM) end

-- load reads what is stored under a key, which ends with the tuple own: nil if there is nothing, else a
-- record, or { damaged = true } if it does not decode or has a wrong sum. whole also reads the body. The
-- sum of the body is not checked: that is for the gateways.
local function load(key, own, whole)
  local v
  if whole then
    v = call('GET', key)
    if not v then return nil end
  else
    v = call('GETRANGE', key, '0', '511')
    if v == '' then return nil end
    whole = #v < 512
  end
  local before, rev, expires, deleting, spec, uid, created, finalizers, refsize, boundsize, length, declared, bindingversion, ext, bodysum, sumat = match(v, HEADER)
  local at = rev and sumat + SUM
  if not rev or #v < at + length - 1 then
    if whole then return { damaged = true } end
    return load(key, own, true)
  end
  local refs = sub(v, at, at + length - 1)
  if sub(v, sumat, at - 1) ~= sumOf(own .. sub(v, 1, sumat - 1) .. refs) then return { damaged = true } end
  return {
    value = v, whole = whole, before = before, rev = rev, expires = expires, deleting = deleting, spec = spec, uid = uid, created = created,
    finalizers = finalizers, refsize = refsize, boundsize = boundsize, declared = declared, bindingversion = bindingversion, ext = ext,
    bodysum = bodysum, refs = refs, bodyat = at + length,
  }
end

-- record makes the stored form without the body, under a key that ends with the tuple own. before are the
-- fields up to the flag of deletion.
local function record(own, before, spec, uid, created, finalizers, refsize, boundsize, refs, declared, bindingversion, ext, bodysum)
  local fields = before .. spec .. '\n' .. uid .. '\n' .. created .. '\n' .. finalizers .. '\n' .. refsize .. '\n' .. boundsize .. '\n' .. #refs .. '\n' ..
    declared .. '\n' .. bindingversion .. '\n' .. ext .. '\n' .. bodysum
  return fields .. sumOf(own .. fields .. refs) .. refs
end

-- expired reports whether the record is expired now.
local function expired(r)
  return r.expires ~= '' and tonumber(r.expires) * 1000 <= now
end

-- add adds to a set each string of a packed list, between a head and a tail. Each is
-- packed behind its length in two bytes. It returns false if the list is malformed.
local function add(set, list, head, tail)
  local i, n = 1, #list
  while i <= n do
    local hi, lo = byte(list, i, i + 1)
    local last = lo and i + 1 + hi * 256 + lo
    if not last or last > n then return false end
    set[head .. sub(list, i + 2, last) .. tail] = true
    i = last + 1
  end
  return true
end

-- members returns the set of the members of the index that lead to a resource, see
-- member.go, or nil if its references are malformed. of is its record or what a put stores.
local function members(a, of)
  local set = { ['n' .. a.own] = true }
  if of.deleting ~= '' then set['d' .. a.own] = true end
  if of.expires ~= '' then set['x' .. a.kind .. of.expires .. a.name] = true end
  return add(set, of.refs, 'r', a.own) and set or nil
end

-- zset makes one ZADD or ZREM of many members, in portions that fit the stack.
local function zset(command, list)
  for from = 1, #list, 2000 do
    write(command, KEYS[2], unpack(list, from, math.min(from + 1999, #list)))
  end
end

-- reindex removes the members that are only in old and adds those only in new.
local function reindex(old, new)
  local gone, come = {}, {}
  for member in pairs(old) do
    if not new[member] then gone[#gone + 1] = member end
  end
  for member in pairs(new) do
    if not old[member] then come[#come + 1] = '0' come[#come + 1] = member end
  end
  zset('ZREM', gone)
  zset('ZADD', come)
end
