package file

import (
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// Config is a source of type file: it follows jsonl files, and files that are one JSON document each.
type Config struct {
	// Globs of the files to follow; ** stands for any number of directories.
	Paths []string `yaml:"paths" kind:"path"`
	// Globs of files to leave alone although paths match them.
	Exclude []string `yaml:"exclude" kind:"path"`
	// Reads also what symbolic links lead to outside of the directory in front of the wildcards.
	FollowSymlinks bool `yaml:"follow_symlinks"`
	// Users, by name or id, whose files are read. Default: everybody's.
	Owners []string `yaml:"owners"`
	// Where to start in a file never seen before: beginning or end.
	StartAt string `yaml:"start_at"`
	// Longer lines and documents are quarantined, cut to this.
	MaxLine spec.Size `yaml:"max_line"`
	// How often to look for changes that the kernel did not report.
	PollInterval spec.Duration `yaml:"poll_interval"`
	// Do not begin files whose last change is older than this. 0s: begin all.
	IgnoreOlderThan spec.Duration `yaml:"ignore_older_than"`
	// Begin with the files that changed last, so that a backlog shows today first.
	NewestFirst bool `yaml:"newest_first"`
}

// Type is the type file.
func Type() spec.Type {
	return spec.Type{
		Name: "file",
		New: func() spec.Section {
			return &Config{StartAt: string(Beginning), MaxLine: 64 << 20, PollInterval: spec.Duration(5 * time.Second)}
		},
		Example: spec.Example{
			Name: "legion", Format: "legion",
			Off: func(s spec.Section) { s.(*Config).Paths = []string{"sessions/*/messages.jsonl"} },
			On: func(s spec.Section) {
				s.(*Config).Exclude = []string{"sessions/*/tmp-*"}
				s.(*Config).Owners = []string{"1000"}
			},
		},
	}
}

// Validate implements spec.Section.
func (c *Config) Validate(check *spec.Check) {
	if len(c.Paths) == 0 {
		check.Required("paths", "")
	}
	check.Globs("paths", c.Paths)
	check.Globs("exclude", c.Exclude)
	for i, name := range c.Owners {
		if _, err := lookupOwner(name); err != nil {
			check.Report(spec.Index("owners", i), err.Error(), "a user's name or id")
		}
	}
	check.OneOf("start_at", c.StartAt, string(Beginning), string(End))
	check.PositiveSize("max_line", c.MaxLine)
	check.Positive("poll_interval", c.PollInterval)
	check.NotNegative("ignore_older_than", c.IgnoreOlderThan)
}

// NewSource implements source.Rereadable.
func (c *Config) NewSource(env source.Env) (source.Files, error) {
	return New(Settings{
		Name: env.Name, Paths: c.Paths, Exclude: c.Exclude, FollowSymlinks: c.FollowSymlinks, Owners: c.Owners,
		StartAt: StartAt(c.StartAt), MaxLine: int(c.MaxLine),
		PollInterval: time.Duration(c.PollInterval), IgnoreOlderThan: time.Duration(c.IgnoreOlderThan), NewestFirst: c.NewestFirst,
		MetadataFiles: env.Formats[env.Format].MetadataFiles, Documents: env.Formats[env.Format].Documents, Logger: env.Logger,
	})
}

// FromBeginning implements source.Rereadable.
func (c *Config) FromBeginning() source.Rereadable {
	all := *c
	all.StartAt, all.IgnoreOlderThan = string(Beginning), 0
	return &all
}

var _ source.Rereadable = (*Config)(nil)
