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

// bbolt's pages, in the machine's byte order. A page may go on over the pages behind it:
//
//	head     id uint64, flags uint16, elements uint16, further pages uint32
//	branch   for each element: place of its key from the element on uint32, length of the key uint32, page uint64
//	leaf     for each element: flags uint32, place of its key uint32, lengths of key and value uint32
//	bucket   the value of an element of a leaf with the flag of buckets: root page uint64, 0 if a page follows, 8 bytes
const (
	pageHead     = 16
	elementBytes = 16
	branchPage   = 1
	leafPage     = 2
	bucketFlag   = 1
	bucketHead   = 16
	// maxPageDepth is deeper than any tree of pages that fits a disk.
	maxPageDepth = 64
)

// checkPages returns an error if a page of the file is damaged. It only looks at files without a list of free pages:
// bbolt scans those in a goroutine of its own, where a damaged page would end the process. It has bbolt's lock meanwhile,
// because the pages of a file that another process writes change while they are read. For a file that is not a store it
// returns nil, because bbolt reports that itself.
func checkPages(path string, o *bbolt.Options) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // bbolt meets it again
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if meta, _ := newestMeta(f); meta == nil || freePagesListed(meta) {
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
	meta, size := newestMeta(f) // the one before may have been replaced before the lock was free
	if meta == nil || freePagesListed(meta) {
		return nil
	}
	c := &pageChecker{f: f, size: size, end: binary.NativeEndian.Uint64(meta[highWaterAt:]), seen: map[uint64]bool{}}
	if err := c.tree(binary.NativeEndian.Uint64(meta[rootAt:]), 0); err != nil {
		return fmt.Errorf("the file is damaged: %w: %w", err, backend.ErrFormat)
	}
	return nil
}

// pageChecker checks that the pages of a file can be read: that all they lead to lies within them, or within the file,
// and that the keys of each bucket are in order.
type pageChecker struct {
	f io.ReaderAt
	// size of a page in bytes, and number of the pages.
	size int64
	end  uint64
	seen map[uint64]bool
	// least is what the next key of the bucket must not be less than; it is greater than that if above is set.
	least []byte
	above bool
}

// next takes the next key of the bucket.
func (c *pageChecker) next(key []byte, above bool) error {
	order := bytes.Compare(c.least, key)
	if order > 0 || order == 0 && c.above {
		return errors.New("keys are not in order")
	}
	c.least = append(c.least[:0], key...)
	c.above = above
	return nil
}

// bucket checks the pages of a bucket by walk.
func (c *pageChecker) bucket(walk func() error) error {
	least, above := c.least, c.above
	c.least = nil
	c.above = false
	err := walk()
	c.least = least
	c.above = above
	return err
}

// tree checks a page and all pages below it.
func (c *pageChecker) tree(id uint64, depth int) error {
	switch {
	case id >= c.end:
		return fmt.Errorf("page %d lies outside the file", id)
	case c.seen[id]:
		return fmt.Errorf("page %d has two places", id)
	case depth > maxPageDepth:
		return fmt.Errorf("page %d lies too deep", id)
	}
	c.seen[id] = true
	var head [pageHead]byte
	if _, err := c.f.ReadAt(head[:], int64(id)*c.size); err != nil {
		return err
	}
	further := uint64(binary.NativeEndian.Uint32(head[12:]))
	if binary.NativeEndian.Uint64(head[:]) != id || further >= c.end-id {
		return fmt.Errorf("page %d has the head of another", id)
	}
	page := make([]byte, int64(further+1)*c.size)
	if _, err := c.f.ReadAt(page, int64(id)*c.size); err != nil {
		return err
	}
	if err := c.elements(page, depth); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// elements checks the elements of a page, and what they lead to.
func (c *pageChecker) elements(page []byte, depth int) error {
	if len(page) < pageHead {
		return errors.New("it is too short")
	}
	flags, n := binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	if flags != branchPage && flags != leafPage || pageHead+n*elementBytes > len(page) {
		return errors.New("it has no branch and no leaf")
	}
	for i := range n {
		at := pageHead + i*elementBytes
		element := page[at : at+elementBytes]
		if flags == branchPage {
			from := uint64(at) + uint64(binary.NativeEndian.Uint32(element))
			to := from + uint64(binary.NativeEndian.Uint32(element[4:]))
			if to > uint64(len(page)) {
				return fmt.Errorf("the key of element %d lies outside", i)
			}
			if err := c.next(page[from:to], false); err != nil {
				return err
			}
			if err := c.tree(binary.NativeEndian.Uint64(element[8:]), depth+1); err != nil {
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

// leaf checks an element of a leaf. rest is the page from the element on.
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
		if root := binary.NativeEndian.Uint64(bucket); root != 0 {
			return c.tree(root, depth+1)
		}
		return c.elements(bucket[bucketHead:], depth+1)
	})
}
