package file

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// Source tails files. The package comment and design.md describe its parts.
type Source struct {
	settings *Settings
	patterns *patterns
	trees    *trees
	files    *fileset

	// The tests replace these.
	watch         func() (watcher, error)
	open          func(path string) (*os.File, error)
	readDir       func(path string) ([]os.DirEntry, error)
	workers       int           // the number of files that are read at the same time, beside one archive
	completeAfter time.Duration // a file without changes for so long is complete
}

var _ source.Files = (*Source)(nil)

// New returns a source, or an error that names the bad setting.
func New(settings Settings) (*Source, error) {
	settings.setDefaults()
	if err := settings.validate(); err != nil {
		return nil, fmt.Errorf("file source %s: %w", settings.Name, err)
	}
	patterns, err := compile(settings.Paths, settings.MetadataFiles, settings.Documents, settings.Exclude)
	if err != nil {
		return nil, fmt.Errorf("file source %s: %w", settings.Name, err)
	}
	trees, err := newTrees(patterns, settings.FollowSymlinks, settings.Owners)
	if err != nil {
		return nil, fmt.Errorf("file source %s: %w", settings.Name, err)
	}
	settings.Logger = source.Logger(settings.Logger, settings.Name)
	s := &Source{
		settings:      &settings,
		patterns:      patterns,
		trees:         trees,
		files:         newFileset(patterns, settings.MaxOpen),
		watch:         newWatcher,
		open:          trees.open,
		readDir:       os.ReadDir,
		workers:       2,
		completeAfter: 2 * time.Second,
	}
	if settings.PollOnly {
		s.watch = noWatcher
	}
	return s, nil
}

// Run tails until ctx ends. It may be called once.
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dirs := newDirectories(ctx, s.settings, s.watch)
	defer dirs.watcher.Close()
	known := sink.Known()
	checkpoint := loadCheckpoint(known, s.files.keys, s.settings.Logger)
	problems := newProblems(sink)
	discovery := s.newDiscovery(dirs, problems, checkpoint, len(known) == 0)
	tailer := s.newTailer(sink, problems)

	var wg sync.WaitGroup
	for range s.workers {
		wg.Go(func() { tailer.work(ctx, &s.files.schedule.plain) })
	}
	wg.Go(func() { tailer.work(ctx, &s.files.schedule.packed) })
	discovery.run(ctx)
	cancel()
	s.files.stop()
	wg.Wait()
	s.files.closeIdle()
	return nil
}

func (s *Source) newDiscovery(dirs *directories, problems *problems, checkpoint checkpoint, firstRun bool) *discovery {
	return &discovery{
		Settings: s.settings, files: s.files, patterns: s.patterns, trees: s.trees, dirs: dirs, checkpoint: checkpoint,
		problems: problems, readDir: s.readDir, firstRun: firstRun,
	}
}

func (s *Source) newTailer(sink source.Sink, problems *problems) *tailer {
	reader := newReader(s.settings.MaxLine, s.settings.MaxRead)
	streams := &streams{sink: sink, files: s.files}
	return &tailer{
		Settings: s.settings, files: s.files, identity: s.newIdentifier(), reader: reader, streams: streams,
		metadata: &metadataReader{files: s.files, streams: streams, reader: reader},
		problems: problems, open: s.open, completeAfter: s.completeAfter,
	}
}

func (s *Source) newIdentifier() *identifier {
	return &identifier{Settings: s.settings, files: s.files, open: s.open}
}

// Again has those documents, and other files that are a frame each, delivered again whose streams are wanted: once
// delivered such a stream is closed.
func (s *Source) Again(wanted func(key string) bool) { s.files.again(wanted) }

// Drained reports whether every file is at its end and delivered. A last line
// without a newline does not count; see Finish.
func (s *Source) Drained() bool { return s.files.drained() }

// Finish announces that nothing more is going to be written. The source delivers last
// lines without a newline as they are; Drained is false until that is done.
func (s *Source) Finish() { s.files.finish() }
