package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// segment is one file of the journal. Its fields are guarded by Journal.mu unless
// they say otherwise.
type segment struct {
	id   uint64
	seed uint32
	path string // of the data; the index's is indexPath

	size     int64    // bytes that are synced: what readers may read
	planned  int64    // with those in memory
	contents contents // until it is sealed
	first    int64    // time of its first record, Unix ns; 0: none yet
	last     int64
	sealed   bool  // it has an index, and grows no more
	gone     bool  // its data was removed; the index stands for it
	indexed  int64 // size of the index
	version  int   // counts the files that its data was copied to
	damaged  int64 // up to where damage was told of

	// Of the flusher.
	out     file
	suspect bool // an fsync failed: nobody knows what the file has
}

func (j *Journal) newSegment(id uint64) *segment {
	return &segment{
		id: id, seed: seedOf(id), path: filepath.Join(j.settings.Dir, fmt.Sprintf("%012d.seg", id)), contents: make(contents),
	}
}

func (g *segment) indexPath() string { return g.path[:len(g.path)-len("seg")] + "idx" }

// writeIndex writes what a segment has, so that its index is whole or not there.
func (j *Journal) writeIndex(g *segment, c contents, size int64) (int64, error) {
	var buf []byte
	for _, e := range c {
		buf = appendEntry(buf, kindEntry, g.seed, e, 0)
	}
	from := len(buf)
	buf = beginRecord(buf)
	endRecord(buf, from, g.seed, &record{kind: kindTrailer, stream: uint64(len(c)), pos: size, at: g.last})
	tmp := g.indexPath() + ".tmp"
	if err := j.replace(tmp, g.indexPath(), func(f file) error {
		_, err := f.WriteAt(buf, 0)
		return err
	}); err != nil {
		return 0, fmt.Errorf("index of segment %d: %w", g.id, err)
	}
	return int64(len(buf)), nil
}

// replace makes a file at once and wholly.
func (j *Journal) replace(tmp, path string, write func(file) error) error {
	d := j.settings.disk
	f, err := d.open(tmp)
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.rename(tmp, path)
	}
	if err != nil {
		_ = d.remove(tmp)
		return err
	}
	return d.syncDir(j.settings.Dir)
}

// errIndex means that an index is damaged.
var errIndex = errors.New("index is damaged")

// readIndex reads an index. What it has before some damage is given all the same.
func (j *Journal) readIndex(g *segment, give func(*entry)) (size, last, bytes int64, err error) {
	f, err := j.settings.disk.read(g.indexPath())
	if err != nil {
		return 0, 0, 0, err
	}
	defer f.Close()
	if bytes, err = f.size(); err != nil {
		return 0, 0, bytes, err
	}
	n, whole := uint64(0), false
	_, _, err = scan(f, g.seed, bytes, func(r *record) error {
		if r.kind == kindTrailer {
			size, last, whole = r.pos, r.at, r.stream == n
			return nil
		}
		e := new(entry)
		if r.kind == kindEntry && e.parse(r) == nil {
			n++
			give(e)
		}
		return nil
	})
	if err == nil && !whole {
		err = errIndex
	}
	return size, last, bytes, err
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
