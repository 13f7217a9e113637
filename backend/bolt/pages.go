package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/backend"
)

// The pages of bbolt, in the byte order of the machine. A page may continue on the pages that follow it:
//
//	head     id uint64, flags uint16, elements uint16, further pages uint32
//	branch   for each element: offset of its key from the element uint32, length of the key uint32, page uint64
//	leaf     for each element: flags uint32, offset of its key uint32, lengths of key and value uint32
//	free     uint64 for each free page; if there are 65,535 or more, elements is 65,535 and their number comes first
//	bucket   the value of a leaf element with bucketFlag: root page uint64 (0: a page follows in the value), 8 more bytes
const (
	pageHead     = 16
	elementBytes = 16
	branchPage   = 1
	leafPage     = 2
	freePage     = 16
	bucketFlag   = 1
	// manyFree as the number of elements means that the page of free pages begins with the real number, which is at
	// least as large.
	manyFree   = 65_535
	bucketHead = 16
	// maxPageDepth is a depth that no tree of pages on a disk reaches.
	maxPageDepth = 64
)

// checkPages returns an error if damage of a page of the file could end the process. There are two such kinds of damage:
//
//   - bbolt reads all pages of a file without a list of free pages, in a goroutine, where nothing recovers from a panic.
//     All pages of such a file are checked.
//   - bbolt stores a small bucket inside the page of its parent, and may copy it to the heap. If a length in the bucket
//     is damaged, bbolt creates a pointer past the end of the copy, and the garbage collector may end the process. So
//     the small buckets of every file are checked.
//
// Meanwhile checkPages holds bbolt's lock of the file, so that no other process changes it. For a file that is not a
// bbolt file it returns nil, because bbolt itself reports that.
func checkPages(path string, o *bbolt.Options) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // bbolt reports it
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if meta, _ := newestMeta(f); meta == nil {
		return nil
	}
	locked, err := bbolt.Open(path, 0o600, &bbolt.Options{
		ReadOnly:     true, // so that it scans no pages
		Timeout:      o.Timeout,
		NoStatistics: true,
		OpenFile:     o.OpenFile,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locked.Close()) }()
	meta, size := newestMeta(f) // read again: it may have changed before the file was locked
	if meta == nil {
		return nil
	}
	c := newPageChecker(f, meta, size)
	c.shallow = freePagesListed(meta)
	if err := c.tree(binary.NativeEndian.Uint64(meta[rootAt:]), 0); err != nil {
		return backend.FormatErrorf("the file is damaged: %w", err)
	}
	return nil
}

// verifyPages returns an error if a page of the file is damaged or missing. It is stricter than checkPages: pages must
// have no space between their elements, and each page must be in use or free. It returns only the first error.
func verifyPages(f io.ReaderAt, meta []byte, size int64) error {
	c := newPageChecker(f, meta, size)
	c.dense = true
	if err := c.tree(binary.NativeEndian.Uint64(meta[rootAt:]), 0); err != nil {
		return err
	}
	if !freePagesListed(meta) {
		return nil
	}
	if err := c.free(binary.NativeEndian.Uint64(meta[freeListAt:])); err != nil {
		return err
	}
	for id := uint64(metaPages); id < c.end; id++ {
		if !c.seen.has(id) {
			return fmt.Errorf("page %d is neither in use nor free", id)
		}
	}
	return nil
}

// metaPages is the number of meta pages, which come before all others.
const metaPages = 2

// pageSet is a set of pages, as a bitmap.
type pageSet []uint64

func newPageSet(pages uint64) pageSet { return make(pageSet, (pages+63)/64) }

func (s pageSet) has(id uint64) bool { return s[id/64]&(1<<(id%64)) != 0 }

func (s pageSet) add(id uint64) { s[id/64] |= 1 << (id % 64) }

// pageChecker checks that the pages of a file can be read: that everything they refer to is within the page or the
// file, and that the keys of each bucket are in order.
type pageChecker struct {
	f io.ReaderAt
	// size is the size of a page in bytes, and end the number of pages.
	size int64
	end  uint64
	seen pageSet
	// dense requires that each element begins where the previous one ends.
	dense bool
	// shallow leaves out the pages of nested buckets.
	shallow bool
	// least is the minimum of the next key in the bucket. If above is set, the key must be greater than least.
	least []byte
	above bool
}

func newPageChecker(f io.ReaderAt, meta []byte, size int64) *pageChecker {
	end := binary.NativeEndian.Uint64(meta[highWaterAt:])
	return &pageChecker{f: f, size: size, end: end, seen: newPageSet(end)}
}

// next checks the next key of a bucket and makes it the new minimum.
func (c *pageChecker) next(key []byte, above bool) error {
	order := bytes.Compare(c.least, key)
	if order > 0 || order == 0 && c.above {
		return errors.New("keys are not in order")
	}
	c.least = append(c.least[:0], key...)
	c.above = above
	return nil
}

// bucket calls walk to check the pages of a nested bucket. The first key there has no minimum. After walk, the previous
// minimum applies again.
func (c *pageChecker) bucket(walk func() error) error {
	least, above := c.least, c.above
	c.least = nil
	c.above = false
	err := walk()
	c.least = least
	c.above = above
	return err
}

// child checks a page to which a branch page points. bbolt never writes such a page without elements.
func (c *pageChecker) child(id uint64, depth int) error {
	var head [pageHead]byte
	_, err := c.f.ReadAt(head[:], int64(id)*c.size)
	if err == nil && c.dense && binary.NativeEndian.Uint16(head[10:]) == 0 {
		return fmt.Errorf("page %d has no elements", id)
	}
	return c.tree(id, depth)
}

// tree checks a page and all pages below it.
func (c *pageChecker) tree(id uint64, depth int) error {
	if depth > maxPageDepth {
		return fmt.Errorf("page %d lies too deep", id)
	}
	page, err := c.page(id)
	if err != nil {
		return err
	}
	if err := c.elements(page, depth); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// page reads a page, including the pages on which it continues.
func (c *pageChecker) page(id uint64) ([]byte, error) {
	switch {
	case id >= c.end:
		return nil, fmt.Errorf("page %d lies outside the file", id)
	case c.seen.has(id):
		return nil, fmt.Errorf("page %d has two places", id)
	}
	var head [pageHead]byte
	if _, err := c.f.ReadAt(head[:], int64(id)*c.size); err != nil {
		return nil, err
	}
	further := uint64(binary.NativeEndian.Uint32(head[12:]))
	if binary.NativeEndian.Uint64(head[:]) != id || further >= c.end-id {
		return nil, fmt.Errorf("page %d has the head of another", id)
	}
	for n := range further + 1 {
		if c.seen.has(id + n) {
			return nil, fmt.Errorf("page %d has two places", id+n)
		}
		c.seen.add(id + n)
	}
	page := make([]byte, int64(further+1)*c.size)
	if _, err := c.f.ReadAt(page, int64(id)*c.size); err != nil {
		return nil, err
	}
	return page, nil
}

// free checks the list of free pages. None of them may be in use.
func (c *pageChecker) free(id uint64) error {
	page, err := c.page(id)
	if err != nil {
		return err
	}
	list := page[pageHead:]
	n := uint64(binary.NativeEndian.Uint16(page[10:]))
	if n == manyFree {
		n = binary.NativeEndian.Uint64(list)
		list = list[8:]
	}
	if binary.NativeEndian.Uint16(page[8:]) != freePage || n > uint64(len(list)/8) {
		return fmt.Errorf("page %d is no list of free pages", id)
	}
	for i := range n {
		free := binary.NativeEndian.Uint64(list[8*i:])
		if free < metaPages || free >= c.end || c.seen.has(free) {
			return fmt.Errorf("page %d is free and in use, or free twice", free)
		}
		c.seen.add(free)
	}
	return nil
}

// elements checks the elements of a page, and everything they refer to.
func (c *pageChecker) elements(page []byte, depth int) error {
	if len(page) < pageHead {
		return errors.New("it is too short")
	}
	flags, n := binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	if flags != branchPage && flags != leafPage || pageHead+n*elementBytes > len(page) {
		return errors.New("it has no branch and no leaf")
	}
	ended := uint64(pageHead + n*elementBytes)
	for i := range n {
		at := pageHead + i*elementBytes
		element := page[at : at+elementBytes]
		from, to := extent(uint64(at), flags, element)
		if c.dense && from != ended {
			return fmt.Errorf("element %d does not begin where the one before ends: elements are missing", i)
		}
		ended = to
		if flags == branchPage {
			if to > uint64(len(page)) {
				return fmt.Errorf("the key of element %d lies outside", i)
			}
			if err := c.next(page[from:to], false); err != nil {
				return err
			}
			if err := c.child(binary.NativeEndian.Uint64(element[8:]), depth+1); err != nil {
				return err
			}
			continue
		}
		if err := c.leaf(page[at:], element, depth); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// extent returns where the key and the value of an element begin and end in a page. at is the offset of the element.
func extent(at uint64, flags uint16, element []byte) (from, to uint64) {
	if flags == branchPage {
		from = at + uint64(binary.NativeEndian.Uint32(element))
		return from, from + uint64(binary.NativeEndian.Uint32(element[4:]))
	}
	from = at + uint64(binary.NativeEndian.Uint32(element[4:]))
	keySize := uint64(binary.NativeEndian.Uint32(element[8:]))
	valueSize := uint64(binary.NativeEndian.Uint32(element[12:]))
	return from, from + keySize + valueSize
}

// leaf checks an element of a leaf. rest is the page from that element on.
func (c *pageChecker) leaf(rest, element []byte, depth int) error {
	key := uint64(binary.NativeEndian.Uint32(element[4:]))
	from := key + uint64(binary.NativeEndian.Uint32(element[8:]))
	to := from + uint64(binary.NativeEndian.Uint32(element[12:]))
	if to > uint64(len(rest)) {
		return errors.New("it lies outside")
	}
	if err := c.next(rest[key:from], true); err != nil {
		return err
	}
	switch flags := binary.NativeEndian.Uint32(element); {
	case flags == 0:
		return nil
	case flags != bucketFlag || to-from < bucketHead:
		return errors.New("it is neither a value nor a bucket")
	}
	bucket := rest[from:to]
	return c.bucket(func() error {
		switch root := binary.NativeEndian.Uint64(bucket); {
		case root == 0:
			return c.elements(bucket[bucketHead:], depth+1)
		case c.shallow:
			return nil
		default:
			return c.tree(root, depth+1)
		}
	})
}
