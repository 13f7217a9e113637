package hugepage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestDenseMemoryIsInHugePages: what is all there is in huge pages afterwards and says what
// it said; what has holes stays as it is, unless the kernel fills it by itself.
func TestDenseMemoryIsInHugePages(t *testing.T) {
	c, ok := newCollapser()
	if !ok {
		t.Skip("the system has no huge pages, or they are switched off")
	}
	const pages = 8
	dense, holey := anonymous(t, pages*c.size), anonymous(t, pages*c.size)
	page := os.Getpagesize()
	for at := 0; at < len(dense); at += page {
		dense[at] = byte(at / page)
		if at/page%8 != 0 {
			holey[at] = 1
		}
	}
	was, holes := bytes.Clone(dense), inHugePages(t, holey)
	if err := collapse(c.above(address(dense)), c.size); errors.Is(err, unix.EINVAL) {
		t.Skip("the kernel cannot collapse memory: it is older than Linux 6.1")
	}
	for try := 0; inHugePages(t, dense) < (pages-1)*int(c.size); try++ {
		if !c.collapseAll(t.Context()) {
			t.Skip("the system has no huge pages to give")
		}
		if try == 50 { // a page that the kernel uses at the moment is left for the next time
			t.Fatalf("%d of %d bytes are in huge pages", inHugePages(t, dense), len(dense))
		}
	}
	if got := inHugePages(t, holey); got != holes && !always(t) {
		t.Errorf("%d bytes that have holes are in huge pages, %d before", got, holes)
	}
	if !bytes.Equal(dense, was) {
		t.Error("the memory says something else")
	}
}

// always says whether the kernel looks for memory to collapse by itself.
func always(t *testing.T) bool {
	t.Helper()
	enabled, err := os.ReadFile(enabledPath)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(enabled), "[always]")
}

// anonymous is memory in a region of its own.
func anonymous(t *testing.T, size uintptr) []byte {
	t.Helper()
	page := os.Getpagesize()
	all, err := unix.Mmap(-1, 0, int(size)+2*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(all) })
	inner := all[page : len(all)-page]
	if err := unix.Mprotect(inner, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	return inner
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// inHugePages is how many bytes of the region of some memory are in huge pages.
func inHugePages(t *testing.T, b []byte) int {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, of, found := strings.Cut(string(smaps), fmt.Sprintf("%x-", address(b)))
	_, of, has := strings.Cut(of, "AnonHugePages:")
	var kilobytes int
	if _, err := fmt.Sscan(of, &kilobytes); !found || !has || err != nil {
		t.Fatal("the region is not listed", err)
	}
	return kilobytes << 10
}

// TestWhatMayBeInHugePages: of a list of regions the anonymous ones that are written.
func TestWhatMayBeInHugePages(t *testing.T) {
	const maps = `00400000-00f9d000 r-xp 00000000 fe:00 1313 /usr/bin/sluice
01a0d000-01a7f000 rw-p 0160c000 fe:00 1313 /usr/bin/sluice
01a7f000-01ad2000 rw-p 00000000 00:00 0
1b3f0000-1b411000 rw-p 00000000 00:00 0 [heap]
c0000000-c0c00000 rw-p 00000000 00:00 0                              [anon: Go: heap]
c0c00000-c4000000 ---p 00000000 00:00 0                              [anon: Go: heap reservation]
7f1000000000-7f1010000000 rw-s 00000000 00:01 77 /dev/zero (deleted)
7f3528009000-7f35281ff000 rw-p 00000000 00:00 0 [anon: Go: page summary]
7ffd0c5f6000-7ffd0c617000 rw-p 00000000 00:00 0 [stack]
no region
ffffffffffffffffff-0 rw-p 00000000 00:00 0
`
	want := []region{{0x1a7f000, 0x1ad2000}, {0xc0000000, 0xc0c00000}}
	if got := regions(maps); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	if got := regions("c0000000-c0c00000 rw-p"); got != nil {
		t.Errorf("%x of a line that was cut off", got)
	}
}

// TestRunEndsWithItsContext: with nil, whatever the system can.
func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 3*interval)
		defer stop()
		begin := time.Now()
		if err := Run(ctx); err != nil || time.Since(begin) != 3*interval {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
