-- Returns the members of the index that lead to expired resources, kind by kind,
-- and of each kind in the order of expiry.
-- KEYS  index
-- ARGV  the first expiry that is in the future, the maximum number of
--       members of one kind
local call, byte, find, sub = redis.call, string.byte, string.find, string.sub
local due, from = {}, '[x'
while true do
  local first = call('ZRANGE', KEYS[1], from, '(y', 'BYLEX', 'LIMIT', '0', '1')[1]
  if not first then return due end
  -- The kind is a string of the tuple encoding, which ends with the first zero that
  -- is not followed by 255.
  local last = 2
  repeat
    last = find(first, '\0', last + 1, true) or #first
  until byte(first, last + 1) ~= 255
  local kind = sub(first, 1, last)
  for _, member in ipairs(call('ZRANGE', KEYS[1], '[' .. kind, '(' .. kind .. ARGV[1], 'BYLEX', 'LIMIT', '0', ARGV[2])) do
    due[#due + 1] = member
  end
  from = '(' .. kind .. '\255'
end
