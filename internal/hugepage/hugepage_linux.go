package hugepage

import (
	"context"
	"errors"
	"os"
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
	// restInterval is how often, where the system has no huge pages to give.
	restInterval = time.Hour
	// share of the time of one processor, as 1/share, is what is spent at most.
	share = 5
	// noticeable is less than it takes to fill a huge page, and more than to see that one is there.
	noticeable = 50 * time.Microsecond
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
	if err != nil || size < uint64(os.Getpagesize()) {
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
		for at := (r.from + c.size - 1) / c.size * c.size; at < r.to && r.to-at >= c.size; at += c.size {
			if !c.dense(at) {
				continue
			}
			begin := time.Now()
			if err := collapse(at, c.size); errors.Is(err, unix.ENOMEM) {
				return false
			}
			if spent := time.Since(begin); spent > noticeable && !wait.For(ctx, (share-1)*spent) {
				return true
			}
		}
	}
	return true
}

// dense says whether nearly all of the memory at an address is there, so that a huge page
// takes hardly more. What is no memory any more is not dense.
func (c *collapser) dense(at uintptr) bool {
	if _, _, failed := unix.Syscall(unix.SYS_MINCORE, at, c.size, uintptr(unsafe.Pointer(&c.present[0]))); failed != 0 {
		return false
	}
	missing := 0
	for _, p := range c.present {
		missing += int(1 - p&1)
	}
	return missing <= len(c.present)/16
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
// alone writes in. Where the kernel has names for them, they are those of Go's heap.
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
