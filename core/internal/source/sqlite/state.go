package sqlite

import (
	"encoding/binary"
	"hash/crc32"
)

// buckets is the number of buckets of a database: with their sums, the State of its recording.
const buckets = 4096

const stateVersion = 1

// sums are the sums of the hashes of the rows in each bucket.
type sums [buckets]uint64

// mix is the hash of a version of a row; that of no row is 0.
func mix(key, hash uint64) uint64 {
	x := key*0x9e3779b97f4a7c15 ^ hash
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32 | 1
}

// encode returns the sums as a State: those that are not 0, with their numbers.
func (s *sums) encode() []byte {
	b := []byte{stateVersion}
	for i, v := range s {
		if v != 0 {
			b = binary.LittleEndian.AppendUint16(b, uint16(i))
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

const (
	sumSize  = 2 + 8
	overhead = 1 + 4
)

// readSums reads a State; false when it is none, or of another version.
func readSums(b []byte) (*sums, bool) {
	s := new(sums)
	if len(b) < overhead || (len(b)-overhead)%sumSize != 0 || b[0] != stateVersion || crc32.ChecksumIEEE(b[:len(b)-4]) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return s, false
	}
	for b = b[1 : len(b)-4]; len(b) > 0; b = b[sumSize:] {
		s[binary.LittleEndian.Uint16(b)%buckets] = binary.LittleEndian.Uint64(b[2:])
	}
	return s, true
}

// maxRecent is the number of rows of a database whose last version is remembered.
const maxRecent = 1 << 16

// recent remembers the versions of rows: those of the last maxRecent at least.
type recent struct{ young, old map[uint64]uint64 }

func (r *recent) get(key uint64) (hash uint64, ok bool) {
	if hash, ok = r.young[key]; !ok {
		hash, ok = r.old[key]
	}
	return hash, ok
}

func (r *recent) put(key, hash uint64) {
	if len(r.young) >= maxRecent {
		r.young, r.old = nil, r.young
	}
	if r.young == nil {
		r.young = make(map[uint64]uint64)
	}
	r.young[key] = hash
}
