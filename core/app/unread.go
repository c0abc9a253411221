package app

import (
	"maps"
	"os"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/source/file"
)

// ReadUpTo is how far a stream of a file was read.
type ReadUpTo struct {
	Stream, Origin string
	Read           int64
}

// UnreadFiles is how the files of a source compare with the part of them that was read.
type UnreadFiles struct {
	Unknown bool  // the source began at the end of its files
	Bytes   int64 // that are not read
	Files   int   // that have such bytes
	Shorter int   // than the part that was read
	Gone    int   // that were read
	Old     int   // that are left alone, by ignore_older_than
}

// CompareFiles compares the files of a source with how far its streams were read. A file that was rewritten has a stream of
// each content, and one that was renamed has its stream under the former name.
func CompareFiles(s *config.Source, report *FileReport, streams []ReadUpTo) (c UnreadFiles) {
	settings, ok := s.Section.(*file.Config)
	if !ok {
		return c
	}
	if settings.StartAt == string(file.End) {
		return UnreadFiles{Unknown: true}
	}
	byOrigin, byInode := make(map[string][]ReadUpTo), make(map[string][]ReadUpTo)
	for _, r := range streams {
		byOrigin[r.Origin] = append(byOrigin[r.Origin], r)
		inode := file.InodeOf(r.Stream)
		byInode[inode] = append(byInode[inode], r)
	}
	paths := slices.AppendSeq(slices.Clone(report.Files), maps.Keys(byOrigin))
	slices.Sort(paths)
	var gone []string
	here := make(map[string]file.Content)
	for _, path := range slices.Compact(paths) {
		now, err := file.ContentOf(path)
		switch {
		case err == nil:
			here[now.Inode] = now
		case os.IsNotExist(err):
			gone = append(gone, path)
		}
		if Packed(path) || err != nil {
			continue
		}
		known := append(slices.Clone(byOrigin[path]), byInode[now.Inode]...)
		read, longest := int64(-1), int64(-1)
		for _, r := range known {
			is := now.Is(r.Stream)
			if is {
				read = max(read, r.Read)
			}
			if is || r.Origin == path { // else another file had the inode
				longest = max(longest, r.Read)
			}
		}
		switch {
		case len(known) == 0 && file.IsRotated(path): // it may be a copy of another one
		case len(known) == 0 && settings.IgnoreOlderThan > 0 && time.Since(now.Changed) > time.Duration(settings.IgnoreOlderThan):
			c.Old++
		case now.Size > read && now.Size > 0:
			c.Files++
			c.Bytes += now.Size - max(read, 0)
		}
		if longest > now.Size && read != now.Size {
			c.Shorter++
		}
	}
	for _, path := range gone {
		if !slices.ContainsFunc(byOrigin[path], func(r ReadUpTo) bool { return here[file.InodeOf(r.Stream)].Is(r.Stream) }) {
			c.Gone++
		}
	}
	return c
}
