CREATE TABLE IF NOT EXISTS {{name "model_prices"}}{{onCluster}}
(
    model                String COMMENT 'Name of the model without what dates it: claude-sonnet-4-5 for claude-sonnet-4-5-20250929',
    valid_from           DateTime('UTC') COMMENT 'The price counts for tokens from then on, until the next row of the model',
    input_usd_per_m      Float64 COMMENT 'US dollars for a million input tokens',
    output_usd_per_m     Float64 COMMENT 'US dollars for a million output tokens; reasoning counts as output',
    cache_read_usd_per_m  Float64 COMMENT 'US dollars for a million tokens read from a cache',
    cache_write_usd_per_m Float64 COMMENT 'US dollars for a million tokens written to a cache, at the shortest lifetime that is sold',
    origin               String COMMENT 'Where the price is from, and when it was looked up',
    ver                  UInt64 DEFAULT toUnixTimestamp64Milli(now64(3)) COMMENT 'Of rows with the same key the highest stands: an inserted row replaces a shipped one'
)
ENGINE = {{everywhere "ver"}}
ORDER BY (model, valid_from)
COMMENT 'What models cost. Insert your own prices; v_usage uses them at once';

INSERT INTO {{name "model_prices"}} (model, valid_from, input_usd_per_m, output_usd_per_m, cache_read_usd_per_m, cache_write_usd_per_m, origin, ver)
SELECT * FROM values('model String, valid_from UInt32, input Float64, output Float64, cache_read Float64, cache_write Float64, origin String, ver UInt64',
    ('claude-opus-4-5', 0, 5, 25, 0.5, 6.25, 'list price of 2025', 0),
    ('claude-opus-4-1', 0, 15, 75, 1.5, 18.75, 'list price of 2025', 0),
    ('claude-opus-4', 0, 15, 75, 1.5, 18.75, 'list price of 2025', 0),
    ('claude-sonnet-4-5', 0, 3, 15, 0.3, 3.75, 'list price of 2025, up to 200,000 tokens of input', 0),
    ('claude-sonnet-4', 0, 3, 15, 0.3, 3.75, 'list price of 2025, up to 200,000 tokens of input', 0),
    ('claude-3-7-sonnet', 0, 3, 15, 0.3, 3.75, 'list price of 2025', 0),
    ('claude-3-5-sonnet', 0, 3, 15, 0.3, 3.75, 'list price of 2025', 0),
    ('claude-haiku-4-5', 0, 1, 5, 0.1, 1.25, 'list price of 2025', 0),
    ('claude-3-5-haiku', 0, 0.8, 4, 0.08, 1, 'list price of 2025', 0),
    ('gpt-5', 0, 1.25, 10, 0.125, 1.25, 'list price of 2025', 0),
    ('gpt-5-codex', 0, 1.25, 10, 0.125, 1.25, 'list price of 2025', 0),
    ('gpt-5-mini', 0, 0.25, 2, 0.025, 0.25, 'list price of 2025', 0),
    ('gpt-5-nano', 0, 0.05, 0.4, 0.005, 0.05, 'list price of 2025', 0),
    ('gpt-4.1', 0, 2, 8, 0.5, 2, 'list price of 2025', 0),
    ('gpt-4.1-mini', 0, 0.4, 1.6, 0.1, 0.4, 'list price of 2025', 0),
    ('gpt-4o', 0, 2.5, 10, 1.25, 2.5, 'list price of 2025', 0),
    ('gpt-4o-mini', 0, 0.15, 0.6, 0.075, 0.15, 'list price of 2025', 0));
