package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/retry"
)

// flush writes what is pending until the journal is closed.
func (j *Journal) flush() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last time.Time  // of a sync
	var until time.Time // nothing is written before, after a failure
	backoff := retry.Backoff{Min: j.settings.retry, Max: time.Second}
	var ending time.Time // when closing may take no longer
	var looked time.Time // when the disk's free space was
	for {
		j.mu.Lock()
		closed := j.closed
		due := j.due(last, until)
		if due == 0 {
			j.take()
		}
		idle := j.writing == nil
		nothing := j.pending == 0
		j.mu.Unlock()
		switch {
		case closed && nothing:
			j.endFile()
			return
		case closed && ending.IsZero():
			ending = time.Now().Add(2 * time.Second)
		case closed && time.Now().After(ending):
			j.mu.Lock()
			j.lost = true
			j.announce()
			j.mu.Unlock()
			j.endFile()
			return
		}
		if idle || due > 0 {
			timer.Reset(due)
			select {
			case <-j.wake:
			case <-timer.C:
			}
			continue
		}
		check := time.Since(looked) >= time.Second
		if check {
			looked = time.Now()
		}
		err := j.commit(j.writing, check)
		j.settled(err)
		if err != nil {
			until = time.Now().Add(backoff.Next())
			continue
		}
		backoff.Reset()
		last = time.Now()
		ending = time.Time{} // as long as it gets on
	}
}

// due returns how long the next write has to wait; a long time when there is
// nothing to write. mu is held.
func (j *Journal) due(last, until time.Time) time.Duration {
	if j.pending == 0 {
		return time.Hour
	}
	if d := time.Until(until); d > 0 {
		return d
	}
	if j.writing != nil || j.closed || j.urgent > j.durable || len(j.groups) > 1 || j.pending >= j.settings.MaxPending/2 {
		return 0
	}
	return max(j.settings.FsyncInterval-time.Since(last), 0)
}

// take makes the oldest group the one that is being written. mu is held.
func (j *Journal) take() {
	if j.writing == nil && len(j.groups) > 0 {
		j.writing = j.groups[0]
		j.groups = j.groups[1:]
	}
}

// settled notes that the group was written, or why it was not.
func (j *Journal) settled(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.announce()
	if err != nil {
		j.stats.Failures++
		if j.failing == nil {
			j.settings.Logger.Error("journal cannot write", "error", err)
		}
		j.failing = err
		return
	}
	b := j.writing
	n := int64(len(b.buf))
	b.segment.size += n
	j.writing = nil
	j.pending -= n
	j.durable += n
	j.stats.Syncs++
	if cap(b.buf) <= int(j.settings.MaxPending) {
		j.spare = b.buf
	}
	if j.failing != nil {
		j.settings.Logger.Info("journal writes again")
		j.failing = nil
		j.settleAll()
	}
}

// commit writes and syncs a group. It may be called again after an error.
func (j *Journal) commit(b *group, check bool) error {
	g := b.segment
	if g.out == nil {
		if err := j.begun(g); err != nil {
			return err
		}
	} else if check {
		if err := j.room(g, 0); err != nil {
			return err
		}
	}
	if g.suspect {
		if err := j.copy(b); err != nil {
			return fmt.Errorf("copy segment %d: %w", g.id, err)
		}
		return nil
	}
	if _, err := g.out.WriteAt(b.buf, g.size); err != nil {
		return fmt.Errorf("write segment %d: %w", g.id, err)
	}
	if err := g.out.Sync(); err != nil {
		g.suspect = true
		return fmt.Errorf("sync segment %d: %w", g.id, err)
	}
	return nil
}

// begun seals the segment before g and creates g's file.
func (j *Journal) begun(g *segment) error {
	if err := j.sealBefore(g); err != nil {
		return err
	}
	if err := j.room(g, j.settings.SegmentSize); err != nil {
		return err
	}
	d := j.settings.disk
	out, err := d.open(g.path)
	if err != nil {
		return err
	}
	// A file of that name can only be of an attempt before this one.
	err = out.Truncate(0)
	if err == nil {
		err = d.syncDir(j.settings.Dir)
	}
	if err != nil {
		return errors.Join(err, out.Close())
	}
	g.out = out
	return nil
}

// sealBefore seals the segments before g, to which nothing is added any more.
func (j *Journal) sealBefore(g *segment) error {
	j.sealing.Lock()
	defer j.sealing.Unlock()
	for _, old := range j.list() {
		if old == g {
			return nil
		}
		j.mu.Lock()
		sealed := old.sealed
		j.mu.Unlock()
		if sealed {
			continue
		}
		if err := j.seal(old); err != nil {
			return err
		}
		if old.out != nil {
			_ = old.out.Close() // it was synced
			old.out = nil
		}
	}
	return nil
}

// copy writes a segment anew after a failed fsync: what was synced before, which
// is on the disk, and the group.
func (j *Journal) copy(b *group) error {
	g := b.segment
	old, err := j.settings.disk.read(g.path)
	if err != nil {
		return err
	}
	defer old.Close()
	err = j.replace(g.path+".tmp", g.path, func(f file) error {
		buf := make([]byte, min(g.size, windowSize))
		for off := int64(0); off < g.size; {
			part := buf[:min(int64(len(buf)), g.size-off)]
			if _, err := old.ReadAt(part, off); err != nil {
				return err
			}
			if _, err := f.WriteAt(part, off); err != nil {
				return err
			}
			off += int64(len(part))
		}
		_, err := f.WriteAt(b.buf, g.size)
		return err
	})
	if err != nil {
		return err
	}
	out, err := j.settings.disk.open(g.path)
	if err != nil {
		return err
	}
	_ = g.out.Close()
	g.out, g.suspect = out, false
	j.mu.Lock()
	g.version++
	j.mu.Unlock()
	return nil
}

// endFile closes the newest segment's file. It is not sealed: the next process
// goes on with it.
func (j *Journal) endFile() {
	j.sealing.Lock()
	defer j.sealing.Unlock()
	for _, g := range j.list() {
		if g.out != nil {
			_ = g.out.Close()
			g.out = nil
		}
	}
}
