-- Looks many items up in a published filter with one command:
--
--   EVALSHA sha count NAME:lease NAME [or NAME-0 NAME-1 ...] generation m k place place ...
--
-- generation, m and k are those of NAME:info, and each item has k places. The answer has a letter for
-- each item, A: it surely has no row, P: it may have one. "" says that there is no lease: whatever is
-- asked for may have a row. "stale" says that NAME:info (and NAME-cursor) must be read anew.
local lease = redis.call('GET', KEYS[1])
if not lease then return '' end
if lease ~= ARGV[1] then return 'stale' end
local m, k, found = ARGV[2], tonumber(ARGV[3]), {}
for i = 2, #KEYS do
  if redis.call('GETBIT', KEYS[i], m) == 0 then return '' end
end
for first = 4, #ARGV, k do
  local letter = 'A'
  for i = 2, #KEYS do
    local all = true
    for place = first, first + k - 1 do
      if all and redis.call('GETBIT', KEYS[i], ARGV[place]) == 0 then all = false end
    end
    if all then letter = 'P' end
  end
  found[#found + 1] = letter
end
return table.concat(found)
