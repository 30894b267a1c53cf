"""The paper's results: reproduced, audited, and drawn again."""
