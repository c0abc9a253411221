package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	stdstrings "strings"
)

// load finds the segments of earlier processes and what they left open. It holds
// the entries of one segment at a time, and reads data only where an index is
// missing: the newest segment, and after a crash.
func (j *Journal) load() error {
	names, err := os.ReadDir(j.settings.Dir)
	if err != nil {
		return err
	}
	data, index := make(map[uint64]bool), make(map[uint64]bool)
	var ids []uint64
	for _, n := range names {
		base, ext, _ := stdstrings.Cut(n.Name(), ".")
		id, err := strconv.ParseUint(base, 10, 64)
		if stdstrings.HasSuffix(ext, "tmp") {
			_ = j.settings.disk.remove(filepath.Join(j.settings.Dir, n.Name()))
			continue
		}
		if err != nil || ext != "seg" && ext != "idx" {
			continue
		}
		if !data[id] && !index[id] {
			ids = append(ids, id)
		}
		if ext == "seg" {
			data[id] = true
		} else {
			index[id] = true
		}
	}
	slices.Sort(ids)
	next := uint64(1)
	for i, id := range ids {
		g := j.newSegment(id)
		next = id + 1
		if err := j.loadSegment(g, data[id], index[id], i == len(ids)-1); err != nil {
			return fmt.Errorf("segment %d: %w", id, err)
		}
	}
	if n := len(j.segments); n == 0 || j.segments[n-1].sealed {
		j.segments = append(j.segments, j.newSegment(next))
	}
	return nil
}

func (j *Journal) loadSegment(g *segment, data, index, newest bool) error {
	if index {
		found := make(contents)
		size, last, bytes, err := j.readIndex(g, func(e *entry) { found[e.number] = e })
		switch {
		case err == nil:
			g.size, g.last, g.indexed, g.sealed, g.gone = size, last, bytes, true, !data
			j.remember(g, found)
			j.segments = append(j.segments, g)
			return nil
		case !errors.Is(err, errIndex):
			return err
		case !data: // what is left of it says what is lost
			j.settings.Logger.Error("journal index is damaged, and its segment is gone", "segment", g.id)
			g.sealed, g.gone, g.indexed = true, true, bytes
			j.remember(g, found)
			j.segments = append(j.segments, g)
			return nil
		}
	}
	return j.recover(g, newest)
}

// recover goes through a segment that has no index.
func (j *Journal) recover(g *segment, newest bool) error {
	f, err := j.settings.disk.open(g.path)
	if err != nil {
		return err
	}
	size, err := f.size()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	orphans := 0
	end, lost, err := scan(f, g.seed, size, func(r *record) error {
		if !g.contents.add(r) {
			orphans++
		}
		if g.first == 0 {
			g.first = r.at
		}
		g.last = max(g.last, r.at)
		return nil
	})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if end < size {
		// What was being written when the process or the machine died. Nobody has seen
		// it: it was not synced.
		j.stats.Truncated += size - end
		j.settings.Logger.Info("journal: cut an unfinished end", "segment", g.id, "bytes", size-end)
		if err := errors.Join(f.Truncate(end), f.Sync()); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if end == 0 {
		if err := errors.Join(f.Close(), j.settings.disk.remove(g.path)); err != nil {
			return err
		}
		if newest { // its number is used again
			j.segments = append(j.segments, g)
		}
		return nil
	}
	g.size, g.planned = end, end
	j.remember(g, g.contents)
	j.segments = append(j.segments, g)
	if newest && lost == 0 && orphans == 0 {
		g.out = f
		return nil
	}
	return errors.Join(f.Close(), j.seal(g))
}

// remember notes which streams are open after a segment.
func (j *Journal) remember(g *segment, c contents) {
	for _, e := range c {
		j.number = max(j.number, e.number+1)
		old := j.open[e.number]
		if e.ended {
			if old != nil {
				j.drop(old)
			}
			continue
		}
		if old != nil {
			e.from, e.to = old.from, max(e.to, old.to)
		}
		s := &stream{entry: *e, segment: g}
		j.open[e.number] = s
		if e.key != "" {
			j.byKey[streamKey(e.source, e.key)] = s
		}
	}
}

// seal ends a segment: its data is synced, and it gets an index.
func (j *Journal) seal(g *segment) error {
	n, err := j.writeIndex(g, g.contents, g.size)
	if err != nil {
		return err
	}
	j.mu.Lock()
	g.sealed, g.indexed, g.contents = true, n, nil
	j.mu.Unlock()
	return nil
}
