//! Signed statements: envelopes, roles, keys, the trust root and the chain.
