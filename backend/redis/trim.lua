-- trim finds the oldest entries beyond the log's bounds, at most 256 and never the last entry. It
-- subtracts them from count and bytes, and returns the id of the last one to remove, nil if there
-- is none. Entries that begin an epoch (type s) do not count.
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

-- due reports whether the log has to be trimmed.
local function due()
  return count > dueEntries + 0 or bytes > dueBytes + 0 or now / 1000 - oldest > dueAge + 0
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
  if count <= 1 or not due() then return end
  local trimmed = trim()
  if not trimmed then return end
  local e, s = match(trimmed, '^(%d+)-(%d+)$')
  call('XTRIM', KEYS[3], 'MINID', '~', e .. '-' .. format('%d', s + 1))
  call('HSET', KEYS[1], 'trimmed', trimmed)
  save()
end
