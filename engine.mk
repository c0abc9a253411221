# The ClickHouse engine library of the embedded store: fetched once into a cache,
# checked against the integrity pinned in engine.lock. A second run is offline.
.PHONY: engine
engine:
	@go run ./cmd/earshot-store --fetch
