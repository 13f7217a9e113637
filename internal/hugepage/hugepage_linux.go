package hugepage

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sluicegw/sluice/internal/wait"
)

const (
	// interval is how often memory is looked at.
	interval = 10 * time.Second
	// restInterval is how often, where the system has no huge pages, or none to give.
	restInterval = time.Minute
	// share of the time of one processor, as 1/share, is what is spent at most.
	share = 5
	// noticeable is less than it takes to fill a huge page, and more than to see that one is there.
	noticeable = 50 * time.Microsecond
	// largest huge page that is filled, in bytes. Whoever uses the memory waits until that is
	// done: machines with base pages of 64 KiB have huge ones of 512 MiB.
	largest = 4 << 20
)

// Run collapses memory into huge pages from time to time, until ctx ends. It never fails:
// where the kernel cannot (before Linux 6.1) or shall not (its setting is never), nothing
// happens.
func Run(ctx context.Context) error {
	for next := interval; wait.For(ctx, next); {
		c, ok := newCollapser()
		if ok {
			ok = c.collapseAll(ctx)
		}
		if next = interval; !ok {
			next = restInterval
		}
	}
	return nil
}

// The kernel's settings, see Documentation/admin-guide/mm/transhuge.rst.
const (
	enabledPath = "/sys/kernel/mm/transparent_hugepage/enabled"
	sizePath    = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"
)

// collapser puts pieces of memory into huge pages.
type collapser struct {
	// size of a huge page in bytes.
	size uintptr
	// present has a byte for each small page of a huge one.
	present []byte
}

// newCollapser makes one, if the system has huge pages and they are not switched off.
func newCollapser() (*collapser, bool) {
	enabled, err := os.ReadFile(enabledPath)
	if err != nil || strings.Contains(string(enabled), "[never]") {
		return nil, false
	}
	text, err := os.ReadFile(sizePath)
	if err != nil {
		return nil, false
	}
	size, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, strconv.IntSize)
	if err != nil || size < uint64(os.Getpagesize()) || size > largest {
		return nil, false
	}
	return &collapser{size: uintptr(size), present: make([]byte, size/uint64(os.Getpagesize()))}, true
}

// collapseAll collapses what is dense in all regions, and says whether the system had huge
// pages for it. What cannot be collapsed for another reason is left for the next time.
func (c *collapser) collapseAll(ctx context.Context) bool {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return false
	}
	for _, r := range regions(string(maps)) {
		for at := c.above(r.from); at >= r.from && at < r.to && r.to-at >= c.size; at += c.size {
			if !c.dense(at) {
				continue
			}
			begin := time.Now()
			err := collapse(at, c.size)
			if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EBUSY) { // of the machine, or of the control group
				return false
			}
			if spent := time.Since(begin); spent > noticeable && !wait.For(ctx, (share-1)*spent) {
				return true
			}
		}
	}
	return true
}

// above is the first address from at on where a huge page may lie.
func (c *collapser) above(at uintptr) uintptr { return (at + c.size - 1) / c.size * c.size }

// dense says whether all of the memory at an address is there, so that a huge page takes no
// more of it, but for what was only read yet. If some was given back, Go would not know that
// it is there again. What is no memory any more is not dense.
func (c *collapser) dense(at uintptr) bool {
	if _, _, failed := unix.Syscall(unix.SYS_MINCORE, at, c.size, uintptr(unsafe.Pointer(&c.present[0]))); failed != 0 {
		return false
	}
	return !slices.ContainsFunc(c.present, func(p byte) bool { return p&1 == 0 })
}

// collapse puts the memory at an address into a huge page, see madvise(2).
func collapse(at, size uintptr) error {
	if _, _, failed := unix.Syscall(unix.SYS_MADVISE, at, size, unix.MADV_COLLAPSE); failed != 0 {
		return failed
	}
	return nil
}

// region is a part of the address space: its first byte, and the one behind its last.
type region struct{ from, to uintptr }

// regions are those of a list (see proc_pid_maps(5)) that are no file's and that the process
// alone writes in, unless they have another name than Go's heap.
func regions(maps string) []region {
	var out []region
	for line := range strings.Lines(maps) {
		f := strings.Fields(line) // address, permissions, offset, device, inode, name
		if len(f) < 5 || f[1] != "rw-p" || f[4] != "0" {
			continue
		}
		if name := strings.Join(f[5:], " "); name != "" && name != "[anon: Go: heap]" {
			continue
		}
		begin, end, _ := strings.Cut(f[0], "-")
		from, err := strconv.ParseUint(begin, 16, strconv.IntSize)
		to, err2 := strconv.ParseUint(end, 16, strconv.IntSize)
		if errors.Join(err, err2) == nil {
			out = append(out, region{uintptr(from), uintptr(to)})
		}
	}
	return out
}
