package config

import "time"

// Default returns the configuration of an empty file: everything but sources.
func Default() *Config {
	return &Config{
		DataDir: "./earshot-data",
		Store: Store{
			Listen:    "127.0.0.1:0",
			MaxMemory: 2 << 30,
		},
		Delivery: Delivery{
			FlushInterval: Duration(500 * time.Millisecond),
			BatchRows:     50_000,
			BatchBytes:    16 << 20,
			MaxInFlight:   16 << 20,
			RetryMin:      Duration(200 * time.Millisecond),
			RetryMax:      Duration(30 * time.Second),
			SpoolMax:      4 << 30,
			IdleClose:     Duration(10 * time.Minute),
			IdleCall:      Duration(6 * time.Hour),
		},
		Now: Now{SilentAfter: Duration(time.Minute), StuckAfter: Duration(10 * time.Minute)},
		Journal: Journal{
			MaxSize:       4 << 30,
			MaxAge:        Duration(168 * time.Hour),
			MinFreeDisk:   1 << 30,
			WhenFull:      WhenFullDropOldest,
			SegmentSize:   64 << 20,
			FsyncInterval: Duration(100 * time.Millisecond),
		},
		Redact:    Redact{Builtin: true, Mode: RedactMask},
		Telemetry: Telemetry{Listen: "127.0.0.1:9464"},
		Log:       Log{Level: "info", Format: "text"},
	}
}

// DefaultPlugin is how the decoder of a format runs that plugins does not name.
func DefaultPlugin() Plugin {
	return Plugin{
		MemoryLimit: 1 << 30,
		Timeout:     Duration(30 * time.Second),
		AutoMTLS:    false,
	}
}

// initialize sets the defaults of a section that exists only once a file has it.
func initialize(section any) {
	switch s := section.(type) {
	case *Plugin:
		*s = DefaultPlugin()
	case *Source:
		*s = Source{Tenant: "default"}
	case *FileSource:
		*s = FileSource{StartAt: StartAtBeginning, MaxLine: 64 << 20, PollInterval: Duration(5 * time.Second)}
	case *TapSource:
		*s = TapSource{MaxBody: 64 << 20}
	case *SSESource:
		*s = SSESource{Method: "GET"}
	case *HTTPSource:
		*s = HTTPSource{Path: "/", MaxBody: 64 << 20}
	case *PollSource:
		*s = PollSource{Method: "GET", Interval: Duration(30 * time.Second)}
	case *ClickHouse:
		*s = ClickHouse{
			CreateSchema: true,
			Compression:  "auto",
			Timeout:      Duration(30 * time.Second),
			TTL: TTL{
				Bodies:   Duration(90 * 24 * time.Hour),
				Messages: Duration(180 * 24 * time.Hour),
				Spans:    Duration(30 * 24 * time.Hour),
				Rollups:  Duration(730 * 24 * time.Hour),
			},
		}
	case *OTLP:
		*s = OTLP{Compression: "gzip", Timeout: Duration(10 * time.Second), MaxBatchBytes: 3 << 20, MetricsInterval: Duration(time.Minute)}
	}
}
