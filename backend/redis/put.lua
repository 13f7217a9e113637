-- members adds to a table the index members for the entries, by entry. An entry is
-- a type, a length in two bytes, and that many bytes. It returns false if they are
-- malformed.
local function members(entries, kind, name, into)
  local i, n = 1, #entries
  while i <= n do
    local t, hi, lo = byte(entries, i, i + 2)
    if not lo then return false end
    local last = i + 2 + hi * 256 + lo
    if last > n then return false end
    local middle = sub(entries, i + 3, last)
    if t == 105 or t == 120 then -- i, x: ordered by kind first
      into[sub(entries, i, last)] = sub(entries, i, i) .. kind .. middle .. name
    else
      into[sub(entries, i, last)] = sub(entries, i, i) .. middle .. kind .. name
    end
    i = last + 1
  end
  return true
end

-- changes compares entries: the index members of those that are only in old, and the
-- arguments of ZADD for those only in new. It returns nothing where apply.lua is
-- needed: an old one is of a type that only a newer release knows, or they are many.
local function changes(old, new, kind, name)
  local was, will, gone, come = {}, {}, {}, {}
  if not members(old, kind, name, was) or not members(new, kind, name, will) then return end
  for entry, member in pairs(was) do
    local t = byte(entry)
    if t ~= 105 and t ~= 114 and t ~= 120 then return end -- i, r, x
    if not will[entry] then gone[#gone + 1] = member end
  end
  for entry, member in pairs(will) do
    if not was[entry] then
      come[#come + 1] = '0'
      come[#come + 1] = member
    end
  end
  if #gone <= 2000 and #come <= 2000 then return gone, come end
end

-- A short cut for the most common batch: one put that creates a resource or replaces
-- one that does not expire. apply.lua does the same at twice the cost. Everything else
-- is left to apply.lua, before anything is written. key is that of the resource, and
-- the arguments of the action follow from.
local function alone(key, from, request)
  local _, kind, name, presence, wanted, revision, deleting, _, unfinalized, uid, finalizers, entries, caller, fields, size, body, _, pass, rowsize, declared, refs, refsize =
    unpack(ARGV, from + 1, from + STRIDE)
  local unlogged = isInternal(kind)
  local last = format('%d', (unlogged and internal or seq) + 1)
  local id = epoch .. '-' .. last
  local event, spec, created, ext, passes, gone, come, before, replaced, kept = 'a', id, ms, '', '1', nil, nil, nil, 0, ''
  -- The header, and entries that are a little longer than the new ones.
  local v = call('GETRANGE', key, '0', format('%d', #entries + #refs + 511))
  if v == '' then
    if presence == 'p' or wanted ~= '' or revision ~= '' or deleting ~= '' or unfinalized ~= '' or pass ~= '' then return end
    if finalizers == '' then finalizers = '0' end
    come = { '0', 'n' .. kind .. name }
    local all = entries .. refs
    local i, n, m = 1, #all, 2
    while i <= n do -- as members() does
      local t, hi, lo = byte(all, i, i + 2)
      local last = i + 2 + hi * 256 + lo
      come[m + 1] = '0'
      if t == 105 or t == 120 then
        come[m + 2] = sub(all, i, i) .. kind .. sub(all, i + 3, last) .. name
      else
        come[m + 2] = sub(all, i, i) .. sub(all, i + 3, last) .. kind .. name
      end
      i, m = last + 1, m + 2
    end
    if m > 2000 then return end
  else
    local rev, oldspec, olduid, oldcreated, held, expires, flag, _, oldrowsize, length, oldrefsize, reflength, olddeclared, oldpasses, oldext, at = match(v, HEADER)
    if not rev or presence == 'a' or expires ~= '' or wanted ~= '' and wanted ~= olduid or revision ~= '' and revision ~= rev or pass ~= '' and pass ~= oldpasses or
      deleting ~= '' and (deleting == 'y') ~= (flag ~= '') or unfinalized ~= '' and held ~= '0' then return end
    local middle, last = at + length, at + length + reflength - 1
    if #v < last then v = call('GETRANGE', key, '0', format('%d', last - 1)) end
    if #v < last then return end -- it is cut short
    local old, oldrefs = sub(v, at, middle - 1), sub(v, middle, last)
    if declared == '' then
      refs, refsize, declared, kept = oldrefs, oldrefsize, olddeclared, '\n' .. olddeclared .. '\n' .. oldrefs
    end
    if old ~= entries then before = old end
    if old ~= entries or oldrefs ~= refs then
      if oldrefs == refs then
        gone, come = changes(old, entries, kind, name)
      else
        gone, come = changes(old .. oldrefs, entries .. refs, kind, name)
      end
      if not gone then return end
    end
    event, uid, created, ext, passes, replaced = 'm', olduid, oldcreated, oldext, oldpasses, oldrowsize
    if caller ~= 'c' then spec = oldspec end
    if finalizers == '' then finalizers = held end
  end
  size = size + refsize
  local stamped = id .. '\n' .. spec .. '\n' .. uid .. '\n' .. created .. '\n' .. ms .. '\n' .. finalizers
  local value = record(stamped, fields, size, rowsize, entries, refsize, refs, declared, passes, ext, body)
  stamped = stamped .. '\n' .. passes .. kept
  call('SET', key, value)
  grown(#value)
  if gone and #gone > 0 then call('ZREM', KEYS[2], unpack(gone)) end
  if come and #come > 0 then call('ZADD', KEYS[2], unpack(come)) end
  if unlogged then
    internal = internal + 1
    return { 'ok', epoch .. '-' .. format('%d', seq), stamped }
  end
  size = size + replaced + 64
  local head = event .. '\n' .. format('%d', size) .. '\n' .. ms .. '\n' .. request .. '\n' .. kind .. name
  if before then
    call('XADD', KEYS[3], id, 'h', head, 'd', value, 'b', before)
  else
    call('XADD', KEYS[3], id, 'h', head, 'd', value)
  end
  if count == 0 then oldest = ms + 0 end
  seq, count, bytes = seq + 1, count + 1, bytes + size
  return { 'ok', id, stamped }
end

-- trim finds the oldest entries beyond the log's bounds, but never the last one,
-- and returns the id of the last one to remove.
local function trim()
  local most, size, age = match(keep, '^(%d+) (%d+) (%d+)$')
  most, size, age = most + 0, size + 0, age + 0
  local trimmed = call('HGET', KEYS[1], 'trimmed')
  local removed, last = 0, nil
  local from = trimmed and '(' .. trimmed or '-'
  while true do
    local page = call('XRANGE', KEYS[3], from, '+', 'COUNT', '64')
    if #page == 0 then return last end
    for _, entry in ipairs(page) do
      local kind, entrysize, at = match(entry[2][2], '^(%l)\n(%d+)\n(%d+)\n')
      if kind ~= 's' then
        at = tonumber(at) or now / 1000
        if removed == 256 or count <= 1 or count <= most and bytes <= size and now / 1000 - at <= age then
          oldest = at
          return last
        end
        removed, last = removed + 1, entry[1]
        count, bytes = count - 1, math.max(bytes - (tonumber(entrysize) or 0), 0)
      end
      from = '(' .. entry[1]
    end
  end
end

local firstSeq, firstInternal = seq, internal
-- saveHead stores what the script changed of the head of the log, and trims the log if
-- that is due. The head is stored first: what follows may find a damaged entry.
local function saveHead()
  local function save()
    call('HSET', KEYS[1], 'seq', format('%d', seq), 'count', format('%d', count), 'bytes', format('%d', bytes), 'oldest', format('%d', oldest))
  end
  if seq ~= firstSeq then save() end
  if internal ~= firstInternal then call('HSET', KEYS[1], 'internal', format('%d', internal)) end
  if count <= 1 or not due(count, bytes) then return end
  local trimmed = trim()
  if not trimmed then return end
  local e, s = match(trimmed, '^(%d+)-(%d+)$')
  call('XTRIM', KEYS[3], 'MINID', '~', e .. '-' .. format('%d', s + 1))
  call('HSET', KEYS[1], 'trimmed', trimmed)
  save()
end
