"""What a host can take: free amounts, its slots, rules about who is near, budgets, and where it is."""
