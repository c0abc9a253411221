package file

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// errReplaced: the content is not the one that was read before.
var errReplaced = errors.New("content was replaced")

// printLen is the number of bytes that a digest of a fingerprint covers at most.
const printLen = 1 << 10

// digest is a hash of up to printLen bytes. The bytes themselves are not kept, since
// they may hold secrets that must not reach a disk. The checkpoint keeps digests.
type digest uint64

func digestOf(b []byte) digest {
	h := sha256.Sum256(b)
	return digest(binary.BigEndian.Uint64(h[:]))
}

func (d digest) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(d)), nil }

func (d *digest) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(string(b), 16, 64)
	*d = digest(v)
	return err
}

// fingerprint recognizes the content of a stream by its beginning and by the bytes before
// the offset up to which it was read. The second distinguishes a file from its successor
// when both begin alike.
type fingerprint struct {
	off     int64  // read up to here; a line begins here
	head    digest // of the first headLen bytes
	headLen int
	tail    digest // of the last bytes before off, printLen or all
}

// fingerprintAt returns the fingerprint of a content that was read up to off. The head
// covers the bytes that were read, but at least least bytes.
func fingerprintAt(r io.ReaderAt, off int64, least int) (fingerprint, error) {
	return fingerprintIn(r, off, least, make([]byte, printLen))
}

// fingerprintIn is fingerprintAt with a buffer of printLen bytes.
func fingerprintIn(r io.ReaderAt, off int64, least int, buf []byte) (fingerprint, error) {
	m := fingerprint{off: off, headLen: int(min(max(off, int64(least)), printLen))}
	n, _, err := readAt(r, buf[:m.headLen], 0)
	if err != nil {
		return fingerprint{}, err
	}
	if n < m.headLen {
		return fingerprint{}, errReplaced
	}
	m.head = digestOf(buf[:n])
	before, err := bytesBefore(r, off, buf)
	m.tail = digestOf(before)
	return m, err
}

// bytesBefore reads the bytes before off, as many as a digest covers, into buf. It
// returns errReplaced when the content is shorter.
func bytesBefore(r io.ReaderAt, off int64, buf []byte) ([]byte, error) {
	buf = buf[:min(off, printLen)]
	n, _, err := readAt(r, buf, off-int64(len(buf)))
	if err == nil && n < len(buf) {
		err = errReplaced
	}
	return buf[:n], err
}

// in reports whether r has the fingerprint.
func (m fingerprint) in(r io.ReaderAt) (bool, error) {
	like, whole, err := m.matchIn(r, make([]byte, printLen))
	return like && whole, err
}

// match reports whether r agrees with the fingerprint as far as it goes. whole is false
// when r ends before off. The beginning is compared first, since an archive has to be
// unpacked up to the tail.
func (m fingerprint) match(r io.ReaderAt) (like, whole bool, err error) {
	return m.matchIn(r, make([]byte, printLen))
}

// matchIn is match with a buffer of printLen bytes.
func (m fingerprint) matchIn(r io.ReaderAt, buf []byte) (like, whole bool, err error) {
	head, err := fingerprintIn(r, 0, m.headLen, buf)
	if err == nil && head.head != m.head {
		return false, false, nil
	}
	var before []byte
	if err == nil {
		before, err = bytesBefore(r, m.off, buf)
	}
	if errors.Is(err, errReplaced) {
		return true, false, nil
	}
	return digestOf(before) == m.tail, true, err
}

// moved returns the fingerprint after the bytes in used were read as well; before are
// the bytes of the present tail. used holds all bytes that were read since, or at least
// printLen of them.
func (m fingerprint) moved(before, used []byte, off int64) fingerprint {
	if m.headLen < printLen && off > int64(m.headLen) { // then before begins with the file
		head := append(append(make([]byte, 0, printLen), before...), used[:min(len(used), printLen-len(before))]...)
		m.head, m.headLen = digestOf(head), len(head)
	}
	if len(used) >= printLen {
		m.tail = digestOf(used[len(used)-printLen:])
	} else {
		all := append(append(make([]byte, 0, 2*printLen), before...), used...)
		m.tail = digestOf(all[max(0, len(all)-printLen):])
	}
	m.off = off
	return m
}

// movedTo is moved when the bytes that were read are in no buffer.
func (m fingerprint) movedTo(r io.ReaderAt, off int64) (fingerprint, error) {
	if m.headLen < printLen {
		return fingerprintAt(r, off, m.headLen)
	}
	b, err := bytesBefore(r, off, make([]byte, printLen))
	m.off, m.tail = off, digestOf(b)
	return m, err
}

// seek returns the fingerprint of the content up to off, another offset than the one
// that was read last. That the content still has the fingerprint m is compared last: then
// the rest was read from it too.
func (m fingerprint) seek(r io.ReaderAt, off int64) (fingerprint, error) {
	buf := make([]byte, printLen) // a file that is opened for a line of its own is sought each time
	to, err := fingerprintIn(r, off, m.headLen, buf)
	if err != nil {
		return m, err
	}
	if like, whole, err := m.matchIn(r, buf); err != nil || !like || !whole {
		return m, cmp.Or(err, errReplaced)
	}
	return to, nil
}
