package wrap

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	maxAge    = 7 * 24 * time.Hour
	maxFolder = 1 << 30 // bytes of a format's recordings
)

// removeOld removes recordings that no wrapper writes: old ones, and the oldest of too many.
func removeOld(dir string, now time.Time) {
	type recording struct {
		path    string
		size    int64
		changed time.Time
	}
	var all []recording
	var total int64
	paths, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			all = append(all, recording{path, info.Size(), info.ModTime()})
			total += info.Size()
		}
	}
	slices.SortFunc(all, func(a, b recording) int { return a.changed.Compare(b.changed) })
	for _, r := range all {
		if now.Sub(r.changed) < maxAge && total <= maxFolder {
			return
		}
		if removeUnlocked(r.path) == nil {
			total -= r.size
		}
	}
}
