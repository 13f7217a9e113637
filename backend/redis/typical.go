package redis

import "sync/atomic"

// typical is the size of the records that scans have read lately. A server does
// not tell sizes before it sends what it was asked for, so this is what bounds
// how much a scan asks for at once. The zero value has read nothing.
type typical struct{ bytes atomic.Int64 }

// unknownSize is taken for granted before anything was read.
const unknownSize = 64 << 10

// note takes what n records had together. Larger ones count at once, smaller
// ones a quarter each time.
func (t *typical) note(bytes, n int) {
	if n == 0 {
		return
	}
	size, was := int64(bytes/n)+1, t.bytes.Load()
	if was > size {
		size = was - (was-size)/4
	}
	t.bytes.Store(size) // of two at the same time either may win
}

// fit is how many records a scan reads at once.
func (t *typical) fit() int {
	size := t.bytes.Load()
	if size == 0 {
		size = unknownSize
	}
	return int(min(max(scanBytes/size, scanLeast), scanPrefetch))
}
